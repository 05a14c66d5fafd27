// The thread that draws the subscriptions' regions: however many there are, the page goes on meanwhile.
//
//   {packed}                                     these are the parts from now on
//   {draw: {window, width, height, colours}}     → {picture, window, parts}, an ImageBitmap

import { drawParts } from './packed.js';

let packed = null;

self.onmessage = ({ data }) => {
  if (data.packed) packed = data.packed;
  if (!data.draw || !packed) return;
  const { window, width, height, colours } = data.draw;
  const canvas = new OffscreenCanvas(width, height);
  const parts = drawParts(canvas.getContext('2d', { willReadFrequently: true }), packed, window, width, height, colours);
  const picture = canvas.transferToImageBitmap();
  self.postMessage({ picture, window, parts }, [picture]);
};
