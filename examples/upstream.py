#!/usr/bin/env python3
"""What the clusters of the examples point at: HTTP servers on 127.0.0.1, each of
which answers any GET with its name.

    python3 examples/upstream.py web:8081 api:8082
    python3 examples/upstream.py --tls CERTIFICATE_AND_KEY.pem billing:8443

Each is printed as "NAME PORT" once it listens. Port 0 is any that is free.
"""
import argparse
import http.server
import ssl
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections; Envoy pools them

    def do_GET(self):
        body = f"{self.server.name}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # the access log is Envoy's


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, name, port, tls):
        super().__init__(("127.0.0.1", port), Handler)
        self.name = name
        if tls:
            # The handshake waits for the thread of its connection: a client that
            # is slow with it holds up no other.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_):
        pass  # a client that went away


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tls", metavar="PEM", help="certificate and key in one file: speak HTTPS")
    parser.add_argument("upstreams", nargs="+", metavar="NAME:PORT")
    args = parser.parse_args()
    tls = None
    if args.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(args.tls)
    for upstream in args.upstreams:
        name, _, port = upstream.rpartition(":")
        server = Server(name, int(port), tls)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(name, server.server_port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
