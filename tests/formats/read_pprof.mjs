// Decodes a raw pprof file with npm's pprof-format and prints what it holds as JSON: node read_pprof.mjs FILE
// Numbers are texts, because they may be larger than JavaScript's are exact.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cwd } from 'node:process';

const require = createRequire(join(cwd(), 'package.json'));
const { Profile } = require('pprof-format');
const profile = Profile.decode(readFileSync(process.argv[2]));
const text = (index) => profile.stringTable.strings[Number(index)];
const byId = (list) => new Map(list.map((one) => [String(one.id), one]));
const functions = byId(profile.function), locations = byId(profile.location), mappings = byId(profile.mapping);

const line = (one) => {
  const called = functions.get(String(one.functionId));
  return { name: text(called.name), file: text(called.filename), line: String(one.line), start: String(called.startLine) };
};
const location = (id) => {
  const one = locations.get(String(id));
  const mapping = mappings.get(String(one.mappingId));
  return { address: String(one.address), path: mapping ? text(mapping.filename) : '', lines: one.line.map(line) };
};
const valueType = (type) => type ? `${text(type.type)}/${text(type.unit)}` : '';
const isText = (one) => Number(one.str) !== 0;
const label = (one) => [text(one.key), isText(one) ? text(one.str) : String(one.num)];

console.log(JSON.stringify({
  types: profile.sampleType.map(valueType),
  periodType: valueType(profile.periodType),
  defaultType: text(profile.defaultSampleType),
  period: String(profile.period),
  labelKinds: Object.fromEntries(profile.sample.flatMap((sample) => sample.label.map((one) => [text(one.key), isText(one) ? 'text' : 'number']))),
  buildIds: profile.mapping.map((mapping) => text(mapping.buildId)),
  comments: profile.comment.map(text),
  samples: profile.sample.map((sample) => ({
    values: sample.value.map(String),
    labels: sample.label.map(label),
    stack: sample.locationId.map(location),
  })),
}));
