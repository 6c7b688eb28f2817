#include "diff/code/code_diff.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata {
namespace {

/// Code as Inductor writes it: two kernels, and a function that calls them.
std::string Python(std::string_view user, std::string_view load, std::string_view call) {
  return fmt::format(R"(
# AOT ID: ['0_inference']
import torch
# kernel path: /tmp/torchinductor_{0}/ab/cab.py
# Graph fragment:
#   %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {{}})
#   %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add,), kwargs = {{}})
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
import triton
def triton_poi_fused_add_relu_0(in_ptr0, xnumel):
    tmp0 = {1}
    tl.store(out_ptr0, tmp0)
''', device_str='cuda')

cpp_fused_mul_1 = async_compile.cpp_pybinding(['const float*'], '''
#include "/tmp/torchinductor_{0}/pi/cpi.h"
extern "C"  void kernel(const float* in_ptr0)
{{
}}
''')

def call(args):
    {2}
)",
                     user, load, call);
}

std::string Show(const std::vector<KernelDiff>& diffs) {
  std::string text = "\n";
  for (const KernelDiff& diff : diffs)
    text += fmt::format("{}\n{}\n", DescribeKernel(diff), fmt::join(diff.lines, "\n"));
  return text;
}

TEST_CASE("generated code: folders of a compiler's cache are not a difference") {
  CHECK(DiffCode({Python("ann", "tl.load(in_ptr0)", "run()"), {}},
                 {Python("bob", "tl.load(in_ptr0)", "run()"), {}})
            .empty());
}

TEST_CASE("generated code: kernels that differ, with the nodes that they compute") {
  const std::string before = Python("ann", "tl.load(in_ptr0)", "run(256)"),
                    after = Python("ann", "tl.load(in_ptr0, mask)", "run(512)");
  CHECK_EQ(Show(DiffCode({before, {}}, {after, {}})), R"(
kernel triton_poi_fused_add_relu_0 (add, relu): +1 −1 lines
 import triton
 def triton_poi_fused_add_relu_0(in_ptr0, xnumel):
-    tmp0 = tl.load(in_ptr0)
+    tmp0 = tl.load(in_ptr0, mask)
     tl.store(out_ptr0, tmp0)
 ''', device_str='cuda')
the code around the kernels: +1 −1 lines
 import torch
 def call(args):
-    run(256)
+    run(512)
)");
  const std::vector<KernelCall> calls{{"triton_poi_fused_add_relu_0", {"add_7"}}};
  CHECK_EQ(DiffCode({before, calls}, {after, calls})[0].nodes, std::vector<std::string>{"add_7"});
}

TEST_CASE("generated code: kernels that only one side has") {
  const std::string with = Python("ann", "tl.load(in_ptr0)", "run()");
  std::string without = with;
  const size_t begin = without.find("# kernel path"), end = without.find("cpp_fused_mul_1");
  without.erase(begin, end - begin);
  const auto diffs = DiffCode({with, {}}, {without, {}});
  REQUIRE_EQ(diffs.size(), 1);
  CHECK_EQ(DescribeKernel(diffs[0]),
           "kernel triton_poi_fused_add_relu_0 (add, relu): only before, 9 lines");
  CHECK_EQ(DescribeKernel(DiffCode({without, {}}, {with, {}})[0]),
           "kernel triton_poi_fused_add_relu_0 (add, relu): only after, 9 lines");
}

}  // namespace
}  // namespace strata
