import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A client of io.grpc:grpc-xds that finds its backends by xDS.
 *
 * <pre>GRPC_XDS_BOOTSTRAP=bootstrap.json java -cp 'lib/*' Client.java xds:///api</pre>
 *
 * For each line of the standard input it makes a call, and prints who answered, or the error.
 */
class Client {
  private static final Metadata.Key<String> BACKEND = Metadata.Key.of("backend", Metadata.ASCII_STRING_MARSHALLER);

  public static void main(String[] args) throws Exception {
    ManagedChannel channel = Grpc.newChannelBuilder(args[0], InsecureChannelCredentials.create()).build();
    HealthGrpc.HealthBlockingStub stub = HealthGrpc.newBlockingStub(channel);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    while (lines.readLine() != null) {
      System.out.println(call(stub));
    }
    channel.shutdownNow();
  }

  private static String call(HealthGrpc.HealthBlockingStub stub) {
    AtomicReference<Metadata> headers = new AtomicReference<>();
    AtomicReference<Metadata> trailers = new AtomicReference<>();
    try {
      stub.withInterceptors(MetadataUtils.newCaptureMetadataInterceptor(headers, trailers))
          .withDeadlineAfter(60, TimeUnit.SECONDS)
          .check(HealthCheckRequest.getDefaultInstance());
    } catch (StatusRuntimeException e) {
      return "error: " + e.getStatus();
    }
    return trailers.get().get(BACKEND);
  }
}
