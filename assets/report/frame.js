// Parts of the frame (frame.html) that several views use.

import { $ } from "./dom.js";

export const mainBox = $("#main");
export const searchBox = $(".finder .search");
