// Measures of the design language, in pixels at zoom 1.

export const NODE_W = 148,
  NODE_H = 38,
  GAP_X = 14,
  GAP_Y = 34,
  GUTTER = 44,
  PAD = 12,
  HEAD = 28,
  SLAB = 46,
  THIN = 30,
  ROW_GAP = 20,
  FOLD_H = 24,
  MARGIN = 22,
  RAIL = 12;
