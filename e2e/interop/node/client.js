// A client of @grpc/grpc-js that finds its backends by xDS.
//
//     GRPC_XDS_BOOTSTRAP=bootstrap.json node client.js xds:///api
//
// For each line of the standard input it makes a call, and prints who answered, or the error.
const readline = require('node:readline');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const health = require('grpc-health-check');
require('@grpc/grpc-js-xds').register();

const { Health } = grpc.loadPackageDefinition(loader.loadSync(health.protoPath)).grpc.health.v1;
const stub = new Health(process.argv[2], grpc.credentials.createInsecure());

const call = () => new Promise((answered) => {
  let failed = null;
  stub.Check({}, { deadline: Date.now() + 60000 }, (error) => { failed = error; })
    .on('status', ({ metadata }) => answered(failed ? `error: ${failed.message}` : metadata.get('backend')[0]));
});

(async () => {
  for await (const _ of readline.createInterface({ input: process.stdin })) console.log(await call());
  process.exit(); // the channel of a cluster that is gone would keep it
})();
