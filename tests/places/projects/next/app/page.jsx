// SPDX-License-Identifier: MIT
// A stranger's page, as page/main.js: rendered on the server first, so the package is imported there too.
'use client';

import { useEffect } from 'react';
import { load } from 'quern';
import { answer } from '../answer.js';

export default function Page() {
  useEffect(() => {
    const { model, ...options } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    answer(load, model, options).then((outcome) => { globalThis.outcome = { ...outcome, isolated: crossOriginIsolated }; });
  }, []);
  return <p>quern</p>;
}
