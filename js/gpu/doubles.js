// SPDX-License-Identifier: MIT
// Doubles in WGSL, which has none: a double is the two words of its bits, the low one first, and every operation rounds
// to nearest even as in IEEE 754. Numbers below the smallest normal one become 0; the functions here have none on their
// way. exp64(), log64() and gelu_erf() repeat src/base/num.c step by step. All of it is arithmetic of integers, so no
// compiler can change a bit. DOUBLES needs fraction() of numbers.js.

const words = new Uint32Array(2);

/** A double as a constant. */
const constant = (value) => {
  new Float64Array(words.buffer)[0] = value;
  return `vec2u(${words[0]}u, ${words[1]}u)`;
};

/** Begins at the highest power. */
const table = (name, values) =>
  `const ${name} = array<vec2u, ${values.length}>(${values.map(constant).join(', ')});`;

/** 1 / 14!, 1 / 13! ... 1 / 2!, of factorials that are exact. */
const FACTORIALS = Array.from({ length: 13 }, (_, i) => {
  let product = 1;
  for (let k = 2; k <= 14 - i; k++) product *= k;
  return 1 / product;
});
const ODD = Array.from({ length: 12 }, (_, i) => 1 / (23 - 2 * i));

const LN2_HI = constant(0x162E42FEE / 2 ** 33);
const LN2_LO = constant((0x1A39EF35793C76 / 2 ** 52) * 2 ** -33);
const ONE = constant(1);
const MAGIC = constant(1.5 * 2 ** 52);
const MINUS_MAGIC = constant(-1.5 * 2 ** 52);

/** The steps of Horner's rule: p = p * x + c for each number of a table after the first one. */
const horner = (name, { length }, x) => `var p = ${name}[0];
  for (var i = 1; i < ${length}; i++) { p = add(mul(p, ${x}), ${name}[i]); }`;

export const DOUBLES = `
fn sticky(lost: u32) -> u32 { return select(0u, 1u, lost != 0u); }
fn minus(a: vec2u) -> vec2u { return vec2u(a.x, a.y ^ 0x80000000u); }
/** Integers of 64 bits. */
fn plus(a: vec2u, b: vec2u) -> vec2u { let x = a.x + b.x; return vec2u(x, a.y + b.y + select(0u, 1u, x < a.x)); }
fn less(a: vec2u, b: vec2u) -> vec2u { return vec2u(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }
fn below(a: vec2u, b: vec2u) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
fn left(a: vec2u, n: u32) -> vec2u {
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2u(0u, a.x << (n - 32u)); }
  return vec2u(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
/** What leaves is remembered in the lowest bit. */
fn right(a: vec2u, n: u32) -> vec2u {
  if (n == 0u) { return a; }
  if (n >= 64u) { return vec2u(sticky(a.x | a.y), 0u); }
  if (n >= 32u) { return vec2u((a.y >> (n - 32u)) | sticky(a.x | ((a.y << 1u) << (63u - n))), 0u); }
  return vec2u((a.x >> n) | (a.y << (32u - n)) | sticky(a.x << (32u - n)), a.y >> n);
}
fn exponent(a: vec2u) -> i32 { return i32((a.y >> 20u) & 2047u); }
/** The 53 bits of a number that is not 0. */
fn whole(a: vec2u) -> vec2u { return vec2u(a.x, (a.y & 0xFFFFFu) | 0x100000u); }
fn size(a: vec2u) -> vec2u { return vec2u(a.x, a.y & 0x7FFFFFFFu); }
/** The number of a sign, an exponent and 56 bits, of which the lowest three are rounded away. */
fn rounded(sign: u32, e: i32, m: vec2u) -> vec2u {
  if (e <= 0) { return vec2u(0u, sign); }
  if (e >= 2047) { return vec2u(0u, sign | 0x7FF00000u); }
  let rest = m.x & 7u;
  let up = select(0u, 1u, rest > 4u || (rest == 4u && (m.x & 8u) != 0u));
  let kept = plus(vec2u((m.x >> 3u) | (m.y << 29u), m.y >> 3u), vec2u(up, 0u));
  return vec2u(kept.x, sign | (kept.y + (u32(e - 1) << 20u)));
}
fn add(a: vec2u, b: vec2u) -> vec2u {
  let swap = below(size(a), size(b));
  let x = select(a, b, swap);
  let y = select(b, a, swap);
  if (exponent(x) == 2047) { return x; }
  if (exponent(y) == 0) { return select(x, vec2u(0u, x.y & y.y & 0x80000000u), exponent(x) == 0); }
  var e = exponent(x);
  var m = left(whole(x), 3u);
  let n = right(left(whole(y), 3u), u32(e - exponent(y)));
  if (((x.y ^ y.y) >> 31u) == 0u) {
    m = plus(m, n);
    if (m.y >= 0x1000000u) { m = right(m, 1u); e += 1; }
  } else {
    m = less(m, n);
    if ((m.x | m.y) == 0u) { return m; }
    let shift = select(countLeadingZeros(m.y), 32u + countLeadingZeros(m.x), m.y == 0u) - 8u;
    m = left(m, shift);
    e -= i32(shift);
  }
  return rounded(x.y & 0x80000000u, e, m);
}
/** 53 bits in four parts of 14. */
fn parts(m: vec2u) -> vec4u { return vec4u(m.x, m.x >> 14u, (m.x >> 28u) | (m.y << 4u), m.y >> 10u) & vec4u(0x3FFFu); }
fn mul(x: vec2u, y: vec2u) -> vec2u {
  let sign = (x.y ^ y.y) & 0x80000000u;
  if (exponent(x) == 2047) { return vec2u(x.x, x.y ^ (y.y & 0x80000000u)); }
  if (exponent(y) == 2047) { return vec2u(y.x, y.y ^ (x.y & 0x80000000u)); }
  if (exponent(x) == 0 || exponent(y) == 0) { return vec2u(0u, sign); }
  let a = parts(whole(x));
  let b = parts(whole(y));
  let c0 = a.x * b.x;
  let c1 = a.x * b.y + a.y * b.x + (c0 >> 14u);
  let c2 = a.x * b.z + a.y * b.y + a.z * b.x + (c1 >> 14u);
  let c3 = a.x * b.w + a.y * b.z + a.z * b.y + a.w * b.x + (c2 >> 14u);
  let c4 = a.y * b.w + a.z * b.z + a.w * b.y + (c3 >> 14u);
  let c5 = a.z * b.w + a.w * b.z + (c4 >> 14u);
  let c6 = a.w * b.w + (c5 >> 14u);
  let lost = ((c0 | c1 | c2) & 0x3FFFu) | (c3 & 127u);
  var m = vec2u(((c3 & 0x3FFFu) >> 7u) | ((c4 & 0x3FFFu) << 7u) | (c5 << 21u), ((c5 & 0x3FFFu) >> 11u) | (c6 << 3u));
  m.x |= sticky(lost);
  let carry = m.y >> 24u;
  return rounded(sign, exponent(x) + exponent(y) - 1023 + i32(carry), right(m, carry));
}
/** x / y, neither infinite nor NaN; y is not 0. */
fn quotient(x: vec2u, y: vec2u) -> vec2u {
  let sign = (x.y ^ y.y) & 0x80000000u;
  if (exponent(x) == 0) { return vec2u(0u, sign); }
  var e = exponent(x) - exponent(y) + 1023;
  var n = whole(x);
  let d = whole(y);
  if (below(n, d)) { n = left(n, 1u); e -= 1; }
  var q = vec2u();
  for (var i = 0; i < 56; i++) {
    q = left(q, 1u);
    if (!below(n, d)) { n = less(n, d); q.x |= 1u; }
    n = left(n, 1u);
  }
  q.x |= sticky(n.x | n.y);
  return rounded(sign, e, q);
}
/** x / d of 2 < d < 128, x not infinite nor NaN. */
fn share(x: vec2u, d: u32) -> vec2u {
  if (exponent(x) == 0) { return x; }
  let n = left(whole(x), 11u);
  var q = vec2u();
  var rest = 0u;
  for (var i = 0u; i < 4u; i++) {
    let some = (rest << 16u) | ((select(n.x, n.y, i < 2u) >> (16u - 16u * (i & 1u))) & 0xFFFFu);
    q = left(q, 16u);
    q.x |= some / d;
    rest = some % d;
  }
  let zeros = countLeadingZeros(q.y);
  q.x |= sticky(rest);
  return rounded(x.y & 0x80000000u, exponent(x) - i32(zeros), right(q, 8u - zeros));
}
fn wide(x: f32) -> vec2u {
  let u = bitcast<u32>(x);
  let sign = u & 0x80000000u;
  let a = u & 0x7FFFFFFFu;
  if (a == 0u) { return vec2u(0u, sign); }
  if (a >= 0x7F800000u) { return vec2u(a << 29u, sign | 0x7FF00000u | ((a & 0x7FFFFFu) >> 3u)); }
  let m = fraction(a);
  return vec2u(u32(m.y) << 29u, sign | ((u32(m.x + 895) << 20u) + (u32(m.y) >> 3u)));
}
/** The bits of the nearest f32. */
fn narrow(x: vec2u) -> u32 {
  let sign = x.y & 0x80000000u;
  if (below(vec2u(0u, 0x7FF00000u), size(x))) { return 0x7FC00000u; }
  let e = exponent(x) - 896;
  if (e >= 255) { return sign | 0x7F800000u; }
  if (exponent(x) == 0) { return sign; }
  let m = right(whole(x), u32(27 + max(0, 1 - e))).x;
  let kept = (m >> 2u) + select(0u, 1u, (m & 3u) == 3u || (m & 7u) == 6u);
  return sign | (select(u32(e - 1) << 23u, 0u, e <= 0) + kept);
}
`;

export const EXP64 = `
${table('FACTORIALS', FACTORIALS)}
fn exp64(x: vec2u) -> vec2u {
  let a = size(x);
  if (below(vec2u(0u, 0x7FF00000u), a)) { return x; }
  if ((x.y >> 31u) != 0u && below(${constant(708)}, a)) { return vec2u(); }
  if ((x.y >> 31u) == 0u && below(${constant(709)}, a)) { return vec2u(0u, 0x7FF00000u); }
  let shifted = add(mul(x, ${constant(1.4426950408889634)}), ${MAGIC});
  let n = add(shifted, ${MINUS_MAGIC});
  let r = add(add(x, minus(mul(n, ${LN2_HI}))), minus(mul(n, ${LN2_LO})));
  ${horner('FACTORIALS', FACTORIALS, 'r')}
  p = add(add(mul(p, mul(r, r)), r), ${ONE});
  return vec2u(p.x, p.y + (shifted.x << 20u));
}
`;

export const LOG64 = `
${table('ODD', ODD)}
fn log64(x: vec2u) -> vec2u {
  var e = exponent(x) - 1023;
  var m = vec2u(x.x, (x.y & 0xFFFFFu) | 0x3FF00000u);
  if (below(${constant(1.4142135623730951)}, m)) { m.y -= 0x100000u; e += 1; }
  let s = quotient(add(m, ${constant(-1)}), add(m, ${ONE}));
  let s2 = mul(s, s);
  ${horner('ODD', ODD, 's2')}
  let n = wide(f32(e));
  return add(mul(n, ${LN2_HI}), add(mul(mul(${constant(2)}, s), p), mul(n, ${LN2_LO})));
}
`;

/** num_gelu_erf(), from and to the bits of an f32; 2k + 1 is above every 2zz from k = 16 on. */
export const GELU_ERF = `
fn gelu_erf(x: f32) -> u32 {
  let u = bitcast<u32>(x);
  if ((u & 0x7FFFFFFFu) >= 0x7F800000u) { return select(0x7FC00000u, u, u == 0x7F800000u); }
  let x2 = wide(x);
  let z = mul(size(x2), ${constant(0.7071067811865476)});
  var e = ${ONE};
  if (below(z, ${constant(4)})) {
    let zz2 = mul(mul(${constant(2)}, z), z);
    var term = ${ONE};
    var sum = ${ONE};
    for (var k = 1u; k < 48u; k++) {
      let last = sum;
      term = share(mul(term, zz2), 2u * k + 1u);
      sum = add(sum, term);
      if (k >= 16u && all(sum == last)) { break; }
    }
    e = mul(mul(mul(${constant(1.1283791670955126)}, z), exp64(mul(minus(z), z))), sum);
  }
  return narrow(mul(mul(${constant(0.5)}, x2), add(${ONE}, select(e, minus(e), (x2.y >> 31u) != 0u))));
}
`;
