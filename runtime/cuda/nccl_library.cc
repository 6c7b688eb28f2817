// libstrata_nccl.so: NCCL behind the function table of runtime/comm/nccl_api.h.

#include <cstring>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <optional>
#include <string>

#include "runtime/comm/nccl_api.h"

namespace strata {
namespace {

using Message = NcclApi::Message;

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

// Texts of CUDA and NCCL are static, except the last error, which NCCL overwrites.
Message Check(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

Message Check(ncclResult_t result, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess) return nullptr;
  thread_local std::string text;
  text = ncclGetErrorString(result);
  if (const char* detail = ncclGetLastError(comm); detail != nullptr && *detail != '\0') {
    text.append(" (").append(detail).append(")");
  }
  return text.c_str();
}

ncclComm_t Native(NcclComm* comm) {
  return reinterpret_cast<ncclComm_t>(comm);
}
cudaStream_t Stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

std::optional<ncclDataType_t> Native(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return ncclInt8;
    case DType::kU8:
    case DType::kBool:
      return ncclUint8;
    case DType::kI32:
      return ncclInt32;
    case DType::kU32:
      return ncclUint32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU64:
      return ncclUint64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF8E4M3FN:
      return ncclFloat8e4m3;
    case DType::kF8E5M2:
      return ncclFloat8e5m2;
    default:
      return std::nullopt;
  }
}

size_t ElementSize(ncclDataType_t type) {
  switch (type) {
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

/// Truth values are bytes: their sum is whether any is true, and 256 of them are not false.
ncclRedOp_t Native(NcclReduce reduce, DType dtype) {
  switch (reduce) {
    case NcclReduce::kSum:
      return dtype == DType::kBool ? ncclMax : ncclSum;
    case NcclReduce::kProduct:
      return ncclProd;
    case NcclReduce::kMax:
      return ncclMax;
    case NcclReduce::kMin:
      return ncclMin;
    case NcclReduce::kAverage:
      return ncclAvg;
  }
  return ncclSum;
}

constexpr Message kNoSuchType = "NCCL has no such element type";
constexpr Message kNoSuchReduction = "truth values have no average";

bool CanReduce(NcclReduce reduce, DType dtype) {
  return reduce != NcclReduce::kAverage || dtype != DType::kBool;
}

Message Version(int* code) {
  return Check(ncclGetVersion(code));
}

Message DeviceCount(int* count) {
  return Check(cudaGetDeviceCount(count));
}

Message UniqueId(NcclId* id) {
  ncclUniqueId native;
  const Message message = Check(ncclGetUniqueId(&native));
  std::memcpy(id->bytes, &native, sizeof(native));
  return message;
}

Message CommCreate(const NcclId* id, int ranks, int rank, int device, NcclComm** comm) {
  if (Message message = Check(cudaSetDevice(device))) return message;
  ncclUniqueId native_id;
  std::memcpy(&native_id, id->bytes, sizeof(native_id));
  ncclComm_t native = nullptr;
  const Message message = Check(ncclCommInitRank(&native, ranks, native_id, rank));
  *comm = reinterpret_cast<NcclComm*>(native);
  return message;
}

Message CommDestroy(NcclComm* comm) {
  if (Message message = Check(ncclCommFinalize(Native(comm)), Native(comm))) return message;
  return Check(ncclCommDestroy(Native(comm)));
}

Message CommAbort(NcclComm* comm) {
  return Check(ncclCommAbort(Native(comm)));
}

Message Broadcast(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  int root, void* stream) {
  const auto type = Native(dtype);
  if (!type) return kNoSuchType;
  return Check(ncclBroadcast(send, receive, count, *type, root, Native(comm), Stream(stream)),
               Native(comm));
}

Message AllReduce(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  NcclReduce reduce, void* stream) {
  const auto type = Native(dtype);
  if (!type) return kNoSuchType;
  if (!CanReduce(reduce, dtype)) return kNoSuchReduction;
  return Check(ncclAllReduce(send, receive, count, *type, Native(reduce, dtype), Native(comm),
                             Stream(stream)),
               Native(comm));
}

Message AllGather(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                  void* stream) {
  const auto type = Native(dtype);
  if (!type) return kNoSuchType;
  return Check(ncclAllGather(send, receive, count, *type, Native(comm), Stream(stream)),
               Native(comm));
}

Message ReduceScatter(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                      NcclReduce reduce, void* stream) {
  const auto type = Native(dtype);
  if (!type) return kNoSuchType;
  if (!CanReduce(reduce, dtype)) return kNoSuchReduction;
  return Check(ncclReduceScatter(send, receive, count, *type, Native(reduce, dtype), Native(comm),
                                 Stream(stream)),
               Native(comm));
}

Message AllToAll(NcclComm* comm, const void* send, const size_t* send_counts, void* receive,
                 const size_t* receive_counts, DType dtype, void* stream) {
  const auto type = Native(dtype);
  if (!type) return kNoSuchType;
  int ranks = 0;
  if (Message message = Check(ncclCommCount(Native(comm), &ranks))) return message;

  const auto* from = static_cast<const char*>(send);
  auto* to = static_cast<char*>(receive);
  ncclResult_t result = ncclGroupStart();
  for (int rank = 0; rank < ranks && result == ncclSuccess; ++rank) {
    result = ncclSend(from, send_counts[rank], *type, rank, Native(comm), Stream(stream));
    if (result != ncclSuccess) break;
    result = ncclRecv(to, receive_counts[rank], *type, rank, Native(comm), Stream(stream));
    from += send_counts[rank] * ElementSize(*type);
    to += receive_counts[rank] * ElementSize(*type);
  }
  // An open group must be closed whatever happened in it; the first error is the one to report.
  const ncclResult_t end = ncclGroupEnd();
  return Check(result != ncclSuccess ? result : end, Native(comm));
}

constexpr NcclApi kApi = {Version,   DeviceCount, UniqueId,  CommCreate,    CommDestroy, CommAbort,
                          Broadcast, AllReduce,   AllGather, ReduceScatter, AllToAll};

}  // namespace
}  // namespace strata

extern "C" __attribute__((visibility("default"))) const strata::NcclApi* strata_nccl_api_1() {
  return &strata::kApi;
}
