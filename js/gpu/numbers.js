// SPDX-License-Identifier: MIT
// WGSL for numbers: what every shader begins with. Shaders must give the bits of src/compute/cpu/kernels_scalar.c, but
// a compiler may fuse a product with a sum, fold constants, and divide approximately. So products pass through k(),
// which no compiler can see through: it XORs the bits with a zero that only the uniform has. Quotients and roots are
// computed with integers. docs/recipes/gpu.md has the rules, and which compilers were checked.
//
// A shader's fast form (fastOf) has the language's own operations in place of these: faster, but a compiler may then
// give each device other bits.

/** Words of a command before its params, which a shader sees too (struct gpu_command in src/compute/gpu/port.h). */
const HEAD = 8;

/** Number of the vector that has param number i of a command. */
export const vectorOf = (i) => (HEAD + i) >> 2;

/** Param number i of a command; number 0 is the zero. */
export const P = (i) => `p.v[${vectorOf(i)}][${i & 3}]`;

const GUARDS = `
fn k(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ ${P(0)}); }
fn k4(x: vec4f) -> vec4f { return bitcast<vec4f>(bitcast<vec4u>(x) ^ vec4u(${P(0)})); }
`;
const NO_GUARDS = `
fn k(x: f32) -> f32 { return x; }
fn k4(x: vec4f) -> vec4f { return x; }
`;

/** @param {'array<u32>' | 'array<atomic<u32>>'} [pages] the type of the pages' words */
export const begin = (pages = 'array<u32>') => `
struct Params { v: array<vec4u, 16> }
@group(0) @binding(0) var<storage, read_write> s: array<u32>;
@group(0) @binding(1) var<storage, read> t: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;
@group(0) @binding(3) var<storage, read> w: array<u32>;
@group(0) @binding(4) var<storage, read_write> pages: ${pages};
${GUARDS}
fn bits(u: u32) -> f32 { return bitcast<f32>(u ^ ${P(0)}); }
fn f(i: u32) -> f32 { return bitcast<f32>(s[i]); }
fn put(i: u32, x: f32) { s[i] = bitcast<u32>(x); }
`;

/** The first lines of a shader's function. */
export const main = (lanes) => `@compute @workgroup_size(${lanes})
fn main(@builtin(workgroup_id) wg: vec3u, @builtin(local_invocation_index) lane: u32) {`;

/** The exponent and the 24 bits of a positive number. */
const FRACTION = `
fn fraction(u: u32) -> vec2i {
  let e = i32(u >> 23u);
  if (e != 0) { return vec2i(e, i32((u & 0x7FFFFFu) | 0x800000u)); }
  let shift = countLeadingZeros(u) - 8u;
  return vec2i(1 - i32(shift), i32(u << shift));
}`;
const QUOTIENT = `
fn divide(x: f32, y: f32) -> f32 {
  let sign = (bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u;
  let a = bitcast<u32>(x) & 0x7FFFFFFFu;
  let b = bitcast<u32>(y) & 0x7FFFFFFFu;
  if (a > 0x7F800000u || b > 0x7F800000u) { return bits(0x7FC00000u); }
  if (a == 0x7F800000u || b == 0u) {
    return bits(select(sign | 0x7F800000u, 0x7FC00000u, b == 0x7F800000u || a == 0u));
  }
  if (a == 0u || b == 0x7F800000u) { return bits(sign); }
  let fa = fraction(a);
  let fb = fraction(b);
  var e = fa.x - fb.x + 127;
  var n = u32(fa.y);
  let d = u32(fb.y);
  if (n < d) { n <<= 1u; e -= 1; }
  var q = 0u;
  for (var i = 0; i < 25; i++) {
    q <<= 1u;
    if (n >= d) { n -= d; q |= 1u; }
    n <<= 1u;
  }
  if (e >= 255) { return bits(sign | 0x7F800000u); }
  let shift = select(1u, u32(2 - e), e <= 0);
  if (shift > 26u) { return bits(sign); }
  let kept = q >> shift;
  let half = (q >> (shift - 1u)) & 1u;
  let rest = select(0u, 1u, n != 0u || (q & ((1u << (shift - 1u)) - 1u)) != 0u);
  let rounded = kept + (half & (rest | (kept & 1u)));
  return bits(sign | (select(u32(e - 1) << 23u, 0u, e <= 0) + rounded));
}
fn root(x: f32) -> f32 {
  let u = bitcast<u32>(x);
  if (u == 0u || u >= 0x7F800000u) { return x; }
  let whole = fraction(u);
  var e = whole.x - 127;
  var m = u32(whole.y);
  if ((e & 1) != 0) { m <<= 1u; e -= 1; }
  var r = 0u;
  var q = 0u;
  var rest = m << 7u;
  for (var i = 0; i < 25; i++) {
    r = (r << 2u) | (rest >> 30u);
    rest <<= 2u;
    let next = (q << 2u) | 1u;
    q <<= 1u;
    if (r >= next) { r -= next; q |= 1u; }
  }
  let up = q & 1u & ((q >> 1u) | select(0u, 1u, r != 0u));
  return bits(u32((e >> 1) + 126) * 0x800000u + (q >> 1u) + up);
}
`;

const NATIVE_QUOTIENT = `
fn divide(x: f32, y: f32) -> f32 { return x / y; }
fn root(x: f32) -> f32 { return sqrt(x); }
`;

/** divide(x, y) and root(x), rounded to nearest as in IEEE 754, subnormal numbers included. */
export const DIVIDE = FRACTION + QUOTIENT;

/** The steps of num_exp() in src/base/num.h. */
export const EXP = `
fn power(x: f32) -> f32 {
  if ((bitcast<u32>(x) & 0x7FFFFFFFu) > 0x7F800000u) { return x; }
  if (x < -87.33f) { return 0.0; }
  if (x > 88.0f) { return bits(0x7F800000u); }
  let n = round(k(x * 1.44269504089f));
  var r = k(x - k(n * 0.693359375f));
  r = k(r - k(n * -2.12194440e-4f));
  var y = k(k(0.00019875691500f * r) + 0.0013981999507f);
  y = k(k(y * r) + 0.0083334519073f);
  y = k(k(y * r) + 0.041665795894f);
  y = k(k(y * r) + 0.16666665459f);
  y = k(k(y * r) + 0.50000001201f);
  y = k(k(y * k(r * r)) + r);
  y = k(y + 1.0f);
  return y * bits(u32(i32(n) + 127) << 23u);
}
`;

/** Nothing may overflow: WGSL does not say what it becomes. */
const NATIVE_EXP = `
fn power(x: f32) -> f32 { return exp(clamp(x, -87.0f, 88.0f)); }
`;

/** num_sigmoid() and num_silu(). */
export const SIGMOID = `${DIVIDE}${EXP}
fn sigmoid(x: f32) -> f32 { return divide(1.0f, k(1.0f + power(-x))); }
fn silu(x: f32) -> f32 { return divide(x, k(1.0f + power(-x))); }
`;

/** num_gelu_tanh(), behind SIGMOID. */
export const GELU = `
fn gelu(x: f32) -> f32 {
  let z = k(x * k(1.5957691f + k(0.07135482f * k(x * x))));
  return divide(x, k(1.0f + power(-z)));
}
`;

/** Both halves of a word, and the half that a float rounds to: f16_from_f32() in src/base/num.h. */
export const HALVES = `
fn half(word: u32, i: u32) -> f32 { let both = unpack2x16float(word); return select(both.x, both.y, (i & 1u) != 0u); }
fn to_half(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  let sign = (u >> 16u) & 0x8000u;
  let a = u & 0x7FFFFFFFu;
  if (a > 0x7F800000u) { return sign | 0x7E00u; }
  if (a >= 0x477FF000u) { return sign | 0x7C00u; }
  if (a < 0x38800000u) { return sign | (bitcast<u32>(k(bits(a) + 0.5f)) - 0x3F000000u); }
  return sign | ((a + 0xFFFu + ((a >> 13u) & 1u) - 0x38000000u) >> 13u);
}
`;

/** 1 over the root of the mean of `sum`, which adds n squares; eps is bits. */
export const inverseRoot = (sum, n, eps) => `divide(1.0f, root(k(divide(${sum}, f32(i32(${n}))) + bits(${eps}))))`;

/** The sum of eight partial sums, in the order of all reductions. */
export const reduce = (of) => {
  const pair = (a, b) => `k(${of(a)} + ${of(b)})`;
  return `k(k(${pair(0, 4)} + ${pair(2, 6)}) + k(${pair(1, 5)} + ${pair(3, 7)}))`;
};

/** The fast form of a shader. @param {string} wgsl */
export const fastOf = (wgsl) =>
  [[GUARDS, NO_GUARDS], [QUOTIENT, NATIVE_QUOTIENT], [EXP, NATIVE_EXP]]
    .reduce((text, [exact, fast]) => text.replace(exact, fast), wgsl);
