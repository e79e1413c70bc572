­
7type.googleapis.com/envoy.service.discovery.v3.Resourceñß
5type.googleapis.com/envoy.config.route.v3.VirtualHost¥
old-urlswww.example.com
/basket.php	*/
cart$
/checkout.php*	/checkout
cart
	/find.php*/
search

/shop/*/
catalog
/	
catalogedge/old-urls