#!/usr/bin/env python3
"""upstream.py is what the examples' clusters point at: HTTP servers on 127.0.0.1
that answer any GET with their name.

    python3 examples/upstream.py web:8081 api:8082
    python3 examples/upstream.py --tls CERT_AND_KEY.pem billing:8443

Each is printed when it listens, as "NAME PORT"; port 0 is any free one.
"""
import argparse
import http.server
import ssl
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections, as Envoy expects of it

    def do_GET(self):
        body = f"{self.server.name}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing: the access log is Envoy's."""


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, name, port, tls):
        super().__init__(("127.0.0.1", port), Handler)
        self.name, self.tls = name, tls

    def finish_request(self, request, client_address):
        # In the thread of the connection: a handshake that hangs holds up no other.
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        """Nothing: a client that went away is no fault of a server."""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tls", metavar="PEM", help="file with certificate and key: speak HTTPS")
    parser.add_argument("upstream", nargs="+", metavar="NAME:PORT")
    args = parser.parse_args()
    tls = None
    if args.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(args.tls)
    for upstream in args.upstream:
        name, _, port = upstream.rpartition(":")
        server = Server(name, int(port), tls)
        print(name, server.server_port, flush=True)
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
