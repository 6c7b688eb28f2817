"""Texts of small graphs: FX text before and after a pass, and native text."""

BEFORE = '''class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8][8, 1]cpu", L_w_: "f32[8, 8][8, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # File: m.py:3 in forward, code: y = x @ w
        mm: "f32[4, 8][8, 1]cpu" = torch.ops.aten.mm.default(l_x_, l_w_);  l_x_ = l_w_ = None
        detach: "f32[4, 8][8, 1]cpu" = torch.ops.aten.detach.default(mm);  mm = None
        split = torch.ops.aten.split.Tensor(detach, 4, 1);  detach = None
        getitem: "f32[4, 4][8, 1]cpu" = split[0]
        getitem_1: "f32[4, 4][8, 1]cpu" = split[1];  split = None
        view: "f32[16][1]cpu" = torch.ops.aten.view.default(getitem, [16]);  getitem = None
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(True, true_graph_0, false_graph_0, (view,));  true_graph_0 = false_graph_0 = view = None
        getitem_2: "f32[16][1]cpu" = cond[0];  cond = None
        return (getitem_2, getitem_1)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[16][1]cpu"):
            sin: "f32[16][1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[16][1]cpu"):
            cos: "f32[16][1]cpu" = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
            return (cos,)
'''

# The detach is gone, the view is a reshape, a body computes something else; names are counted anew.
AFTER = '''class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8][8, 1]cpu", L_w_: "f32[8, 8][8, 1]cpu"):
        l_x_ = L_x_
        l_w_ = L_w_

        # File: m.py:4 in forward, code: y = x @ w
        mm_1: "f32[4, 8][8, 1]cpu" = torch.ops.aten.mm.default(l_x_, l_w_);  l_x_ = l_w_ = None
        split = torch.ops.aten.split.Tensor(mm_1, 4, 1);  mm_1 = None
        getitem: "f32[4, 4][8, 1]cpu" = split[0]
        getitem_1: "f32[4, 4][8, 1]cpu" = split[1];  split = None
        reshape: "f32[16][1]cpu" = torch.ops.aten.reshape.default(getitem, [16]);  getitem = None
        true_graph_0 = self.true_graph_0
        false_graph_0 = self.false_graph_0
        cond = torch.ops.higher_order.cond(True, true_graph_0, false_graph_0, (reshape,));  true_graph_0 = false_graph_0 = reshape = None
        getitem_2: "f32[16][1]cpu" = cond[0];  cond = None
        return (getitem_2, getitem_1)

    class true_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[16][1]cpu"):
            sin: "f32[16][1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
            return (sin,)

    class false_graph_0(torch.nn.Module):
        def forward(self, arg0_1: "f32[16][1]cpu"):
            tan: "f32[16][1]cpu" = torch.ops.aten.tan.default(arg0_1);  arg0_1 = None
            return (tan,)
'''

NATIVE = '''graph step
  x = placeholder : f32[2, 2]
  sin = aten.sin.default(x) : f32[2, 2]
  output(sin)
'''
