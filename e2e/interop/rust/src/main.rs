//! A client of tonic-xds that finds its backends by xDS.
//!
//!     GRPC_XDS_BOOTSTRAP=bootstrap.json client xds:///api
//!
//! For each line of the standard input it makes a call, and prints who answered, or the error.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_xds::{BootstrapConfig, XdsChannelBuilder, XdsChannelConfig, XdsUri};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args()
        .nth(1)
        .ok_or("a target is missing, such as xds:///api")?;
    let config = XdsChannelConfig::new(XdsUri::parse(&target)?).with_bootstrap(bootstrap()?);
    let channel = XdsChannelBuilder::new(config).build_grpc_channel()?;
    let mut client = HealthClient::new(channel);
    for line in io::stdin().lock().lines() {
        line?;
        let mut request = tonic::Request::new(HealthCheckRequest::default());
        request.set_timeout(Duration::from_secs(60));
        match client.check(request).await {
            Ok(answer) => println!(
                "{}",
                answer
                    .metadata()
                    .get("backend")
                    .ok_or("no backend")?
                    .to_str()?
            ),
            Err(status) => println!("error: {:?}: {}", status.code(), status.message()),
        }
        io::stdout().flush()?;
    }
    Ok(())
}

/// Reads the bootstrap. tonic-xds connects to no server without TLS unless the URI has a scheme, which other clients
/// of gRPC refuse.
fn bootstrap() -> Result<BootstrapConfig, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(std::env::var("GRPC_XDS_BOOTSTRAP")?)?;
    let text = text.replace("\"server_uri\": \"", "\"server_uri\": \"http://");
    Ok(BootstrapConfig::from_json(&text)?)
}
