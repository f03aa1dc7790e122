// Uses a flame graph of ddprof as a person would, in a real browser from file://, and prints what was seen as JSON:
//   node open_flamegraph.mjs FILE.svg REGEX FOLDER
// Zooms into the first frame whose name matches, searches, hovers, walks with the keyboard; the pictures go to FOLDER.
// Ends with status 1 when the page reports an error or asks for anything else.
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cwd } from 'node:process';

const require = createRequire(join(cwd(), 'package.json'));
const { chromium } = require('playwright-core');
const [path, regex, pictures] = process.argv.slice(2);

const folder = mkdtempSync(join(tmpdir(), 'ddprof_chromium_'));
const browser = await chromium.launchPersistentContext(folder, {
  executablePath: '/usr/bin/chromium',
  viewport: { width: 1200, height: 800 },
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const errors = [];
const page = await browser.newPage();
page.on('pageerror', (error) => errors.push(String(error)));
page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
page.on('dialog', (dialog) => { errors.push(dialog.message()); return dialog.dismiss(); });
page.on('request', (request) => request.url() !== `file://${path}` && errors.push(`asked for ${request.url()}`));
await page.goto(`file://${path}`);

// What is drawn: name, exact value, pixels.
const drawn = () => page.evaluate(() => [...document.querySelectorAll('#frames > g')].map((group) => {
  const rect = group.querySelector('rect');
  return {
    name: group.getAttribute('aria-label')?.replace(/, [^,]*, [^,]*$/, '') ?? null,
    value: Number(group.dataset?.value ?? group.getAttribute('data-value')),
    count: Number(group.getAttribute('data-count') ?? 1),
    text: group.querySelector('text')?.textContent ?? '',
    overflow: Math.max(0, (group.querySelector('text')?.getBBox().width ?? 0) - Number(rect.getAttribute('width'))),
    left: Number(rect.getAttribute('x')), width: Number(rect.getAttribute('width')), top: Number(rect.getAttribute('y')),
    found: group.classList.contains('found'), above: group.classList.contains('above'),
  };
}));
const state = () => page.evaluate(() => ({
  status: document.querySelector('#status').textContent,
  matched: Number(document.querySelector('#status').getAttribute('data-value')),
  tip: document.querySelector('#tip').getAttribute('display') === 'none' ? []
    : [...document.querySelectorAll('#tip tspan')].map((line) => line.textContent),
  focused: document.activeElement?.getAttribute('aria-label') ?? null,
  width: document.documentElement.getBoundingClientRect().width, scroll: document.documentElement.scrollWidth,
}));
const shot = (name) => page.screenshot({ path: join(pictures, `${name}.png`) });
const frame = (wanted) => page.locator('#frames > g').filter({ has: page.locator(`xpath=self::*[contains(@aria-label, "${wanted}")]`) }).first();

const seen = { whole: { frames: await drawn(), ...(await state()) } };
await shot('whole');

const target = seen.whole.frames.find((one) => one.name && new RegExp(regex).test(one.name));
await frame(target.name).locator('rect').hover();
seen.hovered = await state();
await shot('hovered');
await frame(target.name).locator('rect').click();
seen.zoomed = { target, frames: await drawn(), ...(await state()) };
await shot('zoomed');

await page.keyboard.press('/');
await page.keyboard.type(regex);
seen.searched = { frames: await drawn(), ...(await state()) };
await shot('searched');
await page.keyboard.type('(');
seen.invalid = { frames: await drawn(), ...(await state()) };
await page.keyboard.press('Escape');
seen.reset = { frames: await drawn(), ...(await state()) };

await page.keyboard.press('Control+f');
seen.control_f = await state();
await page.keyboard.press('Escape');
await page.locator('#frames > g').first().focus();
await page.keyboard.press('ArrowDown');
seen.walked = await state();
await page.keyboard.press('Enter');
await page.getByText('Reset zoom').click();
seen.button = { frames: await drawn() };

for (const width of [360, 3000]) {
  await page.setViewportSize({ width, height: 800 });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  seen[`wide_${width}`] = { frames: await drawn(), ...(await state()) };
  await shot(`wide_${width}`);
}
await page.setViewportSize({ width: 1200, height: 800 });
await page.emulateMedia({ colorScheme: 'dark' });
await shot('dark');

console.log(JSON.stringify({ ...seen, errors }));
await browser.close();
rmSync(folder, { recursive: true, force: true });
process.exit(errors.length === 0 ? 0 : 1);
