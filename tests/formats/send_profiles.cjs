// A busy program with npm's dd-trace in it, which sends its own profiles to the agent of DD_TRACE_AGENT_URL: node send_profiles.cjs
// It ends when its standard input does.
const { createRequire } = require('node:module');
const { join } = require('node:path');
createRequire(join(process.cwd(), 'package.json'))('dd-trace').init();

function spend() {
  let sum = 0;
  for (let i = 0; i < 1e6; ++i) sum += Math.sqrt(i);
  return sum;
}

setInterval(spend, 5);
process.stdin.on('end', () => process.exit(0)).resume();
