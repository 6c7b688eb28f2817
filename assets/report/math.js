// Functions of Math under their own names, which the bundle shortens.

export const { abs, ceil, floor, max, min, round } = Math;
