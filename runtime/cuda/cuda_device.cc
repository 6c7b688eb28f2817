// libstrata_cuda.so: a GPU behind runtime/plan/device/device.h, with LibTorch's streams, allocator
// and graphs.

#include <algorithm>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <fmt/format.h>

#include "runtime/codegen/cuda_flex_source.h"
#include "runtime/codegen/cuda_source.h"
#include "runtime/codegen/nvrtc.h"
#include "runtime/plan/device/cuda_loader.h"

namespace strata {

/// Kernels that are launched one after the other, with what that needs.
struct DeviceFunction {
  std::vector<std::pair<cudaKernel_t, CudaLaunch>> launches;
  std::vector<size_t> parameters;  // argument of each
};

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

Status Check(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return Ok();
  (void)cudaGetLastError();  // clears the error, so that it is not reported again
  return Error(ErrorCode::kInternal, "CUDA: {}: {}", what, cudaGetErrorString(error));
}

/// Streams of a GPU, by number: those of the process, so that whoever uses the GPU is in order.
std::vector<c10::cuda::CUDAStream>& StreamsOf(c10::DeviceIndex index) {
  static std::map<c10::DeviceIndex, std::vector<c10::cuda::CUDAStream>> streams;
  return streams[index];
}

/// Runs LibTorch's code, which throws.
template <class Fn>
Status Try(std::string_view what, Fn&& fn) {
  try {
    fn();
    return Ok();
  } catch (const c10::Error& error) {
    std::string why = error.what_without_backtrace();
    why.resize(std::min(why.size(), why.find('\n')));
    return Error(ErrorCode::kInternal, "CUDA: {}: {}", what, why);
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, "CUDA: {}: {}", what, error.what());
  }
}

class CudaDevice final : public Device {
 public:
  CudaDevice(c10::DeviceIndex index, DeviceTraits traits)
      : index_(index),
        traits_(std::move(traits)),
        pool_(at::cuda::graph_pool_handle()),
        streams_(StreamsOf(index)) {
    allocator::createOrIncrefPool(index_, pool_);
    (void)UseStream(0);  // captures cannot begin on the default stream, so nothing runs there
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override {
    graphs().TearDown();
    (void)cudaDeviceSynchronize();
    graphs_.clear();
    for (cudaEvent_t event : events_)
      (void)cudaEventDestroy(event);
    (void)Try("release graphs' memory", [&] { allocator::releasePool(index_, pool_); });
    (void)Try("give memory back", [] { allocator::emptyCache(); });
  }

  const DeviceTraits& traits() const override { return traits_; }

  Status UseStream(int32_t stream) override {
    while (streams_.size() <= static_cast<size_t>(stream))
      streams_.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_));
    c10::cuda::setCurrentCUDAStream(streams_[static_cast<size_t>(stream)]);
    return Ok();
  }

  void* stream() const override { return Current(); }

  Status Record(int32_t event) override {
    while (events_.size() <= static_cast<size_t>(event)) {
      cudaEvent_t created = nullptr;
      STRATA_RETURN_IF_ERROR(
          Check(cudaEventCreateWithFlags(&created, cudaEventDisableTiming), "make an event"));
      events_.push_back(created);
    }
    return Check(cudaEventRecord(events_[static_cast<size_t>(event)], Current()),
                 "record an event");
  }

  Status Wait(int32_t event) override {
    return Check(cudaStreamWaitEvent(Current(), events_[static_cast<size_t>(event)], 0),
                 "wait for an event");
  }

  Status Synchronize() override { return Check(cudaDeviceSynchronize(), "wait for the GPU"); }

  Result<std::vector<DeviceFunction*>> Load(std::span<const Kernel> kernels) override {
    return LoadSource(CudaSource(kernels), kernels.size(), [&](size_t i, DeviceFunction& function) {
      for (const Kernel::Access& access : kernels[i].accesses)
        function.parameters.push_back(static_cast<size_t>(access.argument));
      return std::vector<NamedLaunch>{{fmt::format("strata_kernel_{}", i), LaunchOf(kernels[i])}};
    });
  }

  Result<std::vector<DeviceFunction*>> LoadFlex(std::span<const FlexKernel> kernels) override {
    return LoadSource(
        CudaFlexSource(kernels), kernels.size(), [&](size_t i, DeviceFunction& function) {
          for (size_t argument = 0; argument < NumArguments(kernels[i]); ++argument)
            function.parameters.push_back(argument);
          std::vector<NamedLaunch> launches;
          for (const CudaLaunch& launch : LaunchesOf(kernels[i])) {
            launches.emplace_back(fmt::format("strata_flex_{}_{}", i, launches.size()), launch);
          }
          return launches;
        });
  }

  Status Launch(DeviceFunction* function, std::span<void* const> arguments) override {
    std::vector<void*> parameters;  // addresses of addresses
    for (const size_t argument : function->parameters)
      parameters.push_back(const_cast<void**>(&arguments[argument]));  // NOLINT: CUDA's interface
    for (const auto& [kernel, launch] : function->launches) {
      const dim3 blocks(static_cast<unsigned>(launch.blocks));
      const dim3 threads(static_cast<unsigned>(launch.threads));
      STRATA_RETURN_IF_ERROR(Check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks,
                                                    threads, parameters.data(), 0, Current()),
                                   "launch a kernel"));
    }
    return Ok();
  }

  DeviceMemory memory() const override {
    const c10::CachingDeviceAllocator::DeviceStats stats = allocator::getDeviceStats(index_);
    return {.allocated = stats.allocated_bytes[0].current,
            .peak_allocated = stats.allocated_bytes[0].peak,
            .reserved = stats.reserved_bytes[0].current};
  }
  void ResetPeakMemory() override { allocator::resetPeakStats(index_); }

  Status EnterPool() override {
    return Try("use graphs' memory", [&] {
      allocator::beginAllocateToPool(index_, pool_, [](cudaStream_t) { return true; });
      is_in_pool_ = true;
    });
  }
  void LeavePool() override {
    if (!std::exchange(is_in_pool_, false)) return;
    (void)Try("leave graphs' memory", [&] {
      allocator::endAllocateToPool(index_, pool_);
      allocator::releasePool(index_, pool_);
    });
  }

  Status BeginCapture() override {
    LeavePool();  // a capture enters it itself
    STRATA_RETURN_IF_ERROR(UseStream(0));
    STRATA_RETURN_IF_ERROR(Synchronize());
    graphs_[next_graph_] = std::make_unique<at::cuda::CUDAGraph>();
    const Status begun = Try("begin a capture", [&] {
      graphs_[next_graph_]->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    });
    if (!begun) Abandon(next_graph_);
    return begun;
  }
  Result<int64_t> EndCapture() override {
    STRATA_RETURN_IF_ERROR(UseStream(0));
    const int64_t graph = next_graph_++;
    const Status ended = Try("end a capture", [&] { graphs_[graph]->capture_end(); });
    if (!ended) {
      Abandon(graph);
      return ended.error();
    }
    return graph;
  }
  int64_t NumRecorded() override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    size_t count = 0;
    if (cudaStreamGetCaptureInfo(Current(), &status, nullptr, &graph, nullptr, nullptr, nullptr) !=
            cudaSuccess ||
        status != cudaStreamCaptureStatusActive ||
        cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) {
      (void)cudaGetLastError();
      return 0;
    }
    return static_cast<int64_t>(count);
  }
  Status Replay(int64_t graph) override {
    return Try("replay a graph", [&] { graphs_.at(graph)->replay(); });
  }
  Status Copy(const DeviceBuffer& to, const DeviceBuffer& from) override {
    return Check(cudaMemcpyAsync(to.address, from.address, static_cast<size_t>(from.bytes),
                                 cudaMemcpyDeviceToDevice, Current()),
                 "copy an input");
  }
  void Destroy(int64_t graph) override {
    (void)cudaDeviceSynchronize();  // it may still run
    graphs_.erase(graph);
  }

 private:
  /// Releases a graph whose capture failed. LibTorch's allocator then still asks the graph which
  /// streams it captures: it must no longer, or ask one that is alive, which is why it is leaked.
  void Abandon(int64_t graph) {
    (void)Try("leave a capture's memory", [&] {
      allocator::endAllocateToPool(index_, pool_);
      allocator::releasePool(index_, pool_);
    });
    (void)graphs_[graph].release();  // NOLINT(bugprone-unused-return-value)
    graphs_.erase(graph);
  }

  using NamedLaunch = std::pair<std::string, CudaLaunch>;

  /// Compiles a source, or finds it compiled. `describe` sets the parameters of function i and
  /// gives its launches.
  template <class Describe>
  Result<std::vector<DeviceFunction*>> LoadSource(const std::string& source, size_t count,
                                                  Describe describe) {
    if (const auto known = loaded_.find(source); known != loaded_.end()) return known->second;
    const auto arch = static_cast<int32_t>(traits_.capability * 10 + 0.5);
    STRATA_TRY(const CudaImage image, CompileCudaSource(source, arch));
    cudaLibrary_t library = nullptr;
    STRATA_RETURN_IF_ERROR(Check(
        cudaLibraryLoadData(&library, image.cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "load kernels"));
    std::vector<DeviceFunction*> functions;
    for (size_t i = 0; i < count; ++i) {
      auto function = std::make_unique<DeviceFunction>();
      for (const auto& [name, launch] : describe(i, *function)) {
        auto& [kernel, its_launch] = function->launches.emplace_back(nullptr, launch);
        STRATA_RETURN_IF_ERROR(
            Check(cudaLibraryGetKernel(&kernel, library, name.c_str()), "find a kernel"));
      }
      functions.push_back(function.get());
      functions_.push_back(std::move(function));
    }
    loaded_.emplace(source, functions);
    return functions;
  }

  cudaStream_t Current() const { return c10::cuda::getCurrentCUDAStream(index_).stream(); }

  c10::DeviceIndex index_;
  DeviceTraits traits_;
  c10::cuda::MempoolId_t pool_;
  std::vector<c10::cuda::CUDAStream>& streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<std::unique_ptr<DeviceFunction>> functions_;
  std::map<std::string, std::vector<DeviceFunction*>> loaded_;  // by source
  std::map<int64_t, std::unique_ptr<at::cuda::CUDAGraph>> graphs_;
  int64_t next_graph_ = 0;
  bool is_in_pool_ = false;
};

Error NoGpu(std::string_view why) {
  return Error(ErrorCode::kUnsupported,
               "no GPU can be used: CUDA: {}: check nvidia-smi, or take device = 'cpu'", why);
}

/// LibTorch has machine code for some kinds of GPUs only; the first kernel shows whether for this.
Status RunAKernel(const std::string& device) {
  return Try("run a kernel", [&] {
    const auto options = at::TensorOptions().device(c10::Device(device)).dtype(at::kFloat);
    TORCH_CHECK(at::ones({1}, options).item<float>() == 1.0F, "it gave a wrong number");
  });
}

Result<std::unique_ptr<Device>> Open(const CudaOptions& options) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    (void)cudaGetLastError();
    return NoGpu(cudaGetErrorString(error));
  }
  if (options.index >= count) {
    return NoGpu(fmt::format("there are {} GPUs, none of number {}", count, options.index));
  }
  cudaDeviceProp properties{};
  STRATA_RETURN_IF_ERROR(
      Check(cudaGetDeviceProperties(&properties, options.index), "ask for the GPU's properties"));

  if (options.deterministic) {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // read when cuBLAS starts
  }
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(options.deterministic, options.warn_only);
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(options.deterministic);
  context.setAllowTF32CuBLAS(options.allow_tf32);
  context.setAllowTF32CuDNN(options.allow_tf32);

  PreloadNvrtc();
  std::unique_ptr<Device> device;
  STRATA_RETURN_IF_ERROR(Try("start LibTorch on the GPU", [&] {
    context.lazyInitDevice(c10::DeviceType::CUDA);
    c10::cuda::set_device(static_cast<c10::DeviceIndex>(options.index));
    DeviceTraits traits{.name = fmt::format("cuda:{}", options.index),
                        .is_gpu = true,
                        .capability = properties.major + properties.minor / 10.0,
                        .cudnn = at::Context::hasCuDNN() ? at::Context::versionRuntimeCuDNN() : 0,
                        .deterministic = options.deterministic};
    device = std::make_unique<CudaDevice>(static_cast<c10::DeviceIndex>(options.index),
                                          std::move(traits));
  }));
  if (const Status ran = RunAKernel(device->traits().name); !ran) {
    return NoGpu(fmt::format("{} of compute capability {}.{} does not run LibTorch's kernels: {}",
                             properties.name, properties.major, properties.minor,
                             ran.error().message()));
  }
  return device;
}

}  // namespace
}  // namespace strata

extern "C" __attribute__((visibility("default"))) void strata_open_cuda_1(
    const strata::CudaOptions& options, strata::Result<std::unique_ptr<strata::Device>>& device) {
  device = strata::Open(options);
}
