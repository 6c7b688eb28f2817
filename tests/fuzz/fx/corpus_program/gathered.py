import torch

class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, primals_1, primals_2):
        all_gather_into_tensor = torch.ops._c10d_functional.all_gather_into_tensor.default(primals_1, 4, '0');  primals_1 = None
        wait_tensor = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor);  all_gather_into_tensor = None
        view = torch.ops.aten.view.default(primals_2, [-1, 8]);  primals_2 = None
        mm = torch.ops.aten.mm.default(view, wait_tensor);  view = wait_tensor = None
        split = torch.ops.aten.split.Tensor(mm, 2, 1);  mm = None
        getitem = split[0]
        getitem_1 = split[1];  split = None
        mul = torch.ops.aten.mul.Tensor(getitem, getitem_1);  getitem = getitem_1 = None
        return (mul,)

def load_args(reader):
    buf0 = reader.storage(None, 32, device=device(type='cuda', index=0), dtype_hint=torch.bfloat16)
    reader.tensor(buf0, (2, 4), dtype=torch.bfloat16, is_leaf=True)  # primals_1
    buf1 = reader.storage(None, 128, device=device(type='cuda', index=0), dtype_hint=torch.bfloat16)
    reader.tensor(buf1, (2, 4, 8), dtype=torch.bfloat16, is_leaf=True)  # primals_2
load_args._version = 0

def get_pg_config():
    return {'0': {'size': 4, 'rank': 0}}
