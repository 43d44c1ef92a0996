// SPDX-License-Identifier: MIT
// Whether a model's logits are the expected ones, bit by bit, in each of some configurations.

/** @returns {Promise<{wrong: object[], dots: string[]}>} the configurations in which they are not, with what ran instead; how each multiplied */
export async function compare(load, { model: source, expected, tokens, configurations }) {
  const bits = new Uint32Array(typeof expected === 'string' ? await (await fetch(expected)).arrayBuffer() : expected);
  const wrong = [];
  const dots = [];
  for (const configuration of configurations) {
    const model = await load(source, { ...configuration, store: false });
    const logits = await model.logits(tokens);
    const found = new Uint32Array(logits.buffer, logits.byteOffset, logits.length);
    const { backend, variant, threads } = model.info;
    const ran = { ...configuration, backend, variant, threads };
    const first = bits.findIndex((value, i) => value !== found[i]);
    if (first >= 0 || found.length !== bits.length || Object.keys(configuration).some((key) => ran[key] !== configuration[key])) wrong.push({ configuration, ran, first });
    dots.push(model.info.dots);
    await model.dispose();
  }
  return { wrong, dots };
}
