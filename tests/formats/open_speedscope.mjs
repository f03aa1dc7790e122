// Opens a profile in the real speedscope, in a real browser, and prints what is on the screen as JSON:
//   node open_speedscope.mjs PROFILE SCREENSHOT
// Ends with status 1 when the page reports an error.
import { createReadStream, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { cwd } from 'node:process';

const require = createRequire(join(cwd(), 'package.json'));
const { chromium } = require('playwright-core');
const [profile, screenshot] = process.argv.slice(2);
const viewer = join(dirname(require.resolve('speedscope/package.json')), 'dist', 'release');
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json' };

// The viewer and the profile come from one server: nothing else can be reached.
const server = createServer((request, response) => {
  const name = basename(new URL(request.url, 'http://localhost').pathname);
  const file = name === basename(profile) ? profile : join(viewer, name);
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' });
  return createReadStream(file).pipe(response);
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const address = `http://127.0.0.1:${server.address().port}`;

const folder = mkdtempSync(join(tmpdir(), 'ddprof_chromium_'));
const browser = await chromium.launchPersistentContext(folder, {
  executablePath: '/usr/bin/chromium',
  viewport: { width: 1400, height: 800 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const errors = [];
const page = await browser.newPage();
page.on('pageerror', (error) => errors.push(String(error)));
page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
page.on('dialog', (dialog) => { errors.push(dialog.message()); return dialog.dismiss(); });

await page.goto(`${address}/index.html#profileURL=${encodeURIComponent(`${address}/${basename(profile)}`)}`);
// The toolbar names the profile that is shown once it is loaded, as "name (2/8)" when there are several.
const shown = await page
  .waitForFunction(() => document.title !== 'speedscope' && document.querySelector('canvas') && document.body.innerText,
    undefined, { timeout: 60000 })
  .then((handle) => handle.jsonValue())
  .catch((error) => { errors.push(String(error)); return document_text(); });
await page.screenshot({ path: screenshot });

async function document_text() {
  return page.evaluate(() => document.body.innerText);
}

const wanted = errors.filter((text) => !text.includes('favicon'));
console.log(JSON.stringify({ title: await page.title(), shown, errors: wanted }));
await browser.close();
server.close();
rmSync(folder, { recursive: true, force: true });
process.exit(wanted.length === 0 ? 0 : 1);
