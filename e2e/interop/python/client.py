"""A client of grpcio that finds its backends by xDS.

    GRPC_XDS_BOOTSTRAP=bootstrap.json client.py xds:///api

For each line of the standard input it makes a call, and prints who answered, or the error.
"""

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc


def call(stub):
    try:
        _, answered = stub.Check.with_call(health_pb2.HealthCheckRequest(), timeout=60)
    except grpc.RpcError as e:
        return f"error: {e.code().name}: {e.details()}"
    return dict(answered.trailing_metadata())["backend"]


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for _ in sys.stdin:
            print(call(stub), flush=True)


main()
