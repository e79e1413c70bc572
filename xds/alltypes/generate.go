package alltypes

//go:generate ./generate.sh
