#pragma once
#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace strata {

/// What ranks share to find each other: made by one, given to all others byte by byte.
struct NcclId {
  unsigned char bytes[128];
};

/// A communicator of NCCL; its layout is NCCL's.
struct NcclComm;

/// Of truth values the sum is whether any is true; they have no average.
enum class NcclReduce : uint8_t { kSum, kProduct, kMax, kMin, kAverage };

/// The interface of libstrata_nccl.so, without a type of CUDA or NCCL, so that a program can be
/// built and started where neither is. `NcclLibrary` (nccl_loader.h) loads it.
///
/// Every function returns null, or what went wrong; the text lives until the thread's next call.
/// Buffers are device memory of the current device, counts are elements, `stream` is a cudaStream_t
/// (null: the default stream). Collectives are enqueued on it and return at once; every rank calls
/// them in the same order.
struct NcclApi {
  using Message = const char*;

  /// NCCL's version as one number: 22809 is 2.28.9.
  Message (*version)(int* code);
  /// GPUs that this process sees.
  Message (*device_count)(int* count);
  Message (*unique_id)(NcclId* id);

  /// Waits for all `ranks` ranks; uses GPU `device` and makes it the thread's current one.
  Message (*comm_create)(const NcclId* id, int ranks, int rank, int device, NcclComm** comm);
  /// Waits for the communicator's work. Collective: every rank calls it.
  Message (*comm_destroy)(NcclComm* comm);
  /// Ends at once, also with collectives that wait for a rank which died.
  Message (*comm_abort)(NcclComm* comm);

  Message (*broadcast)(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                       int root, void* stream);
  Message (*all_reduce)(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                        NcclReduce reduce, void* stream);
  /// Every rank sends `count` elements and receives ranks × count, in the order of ranks.
  Message (*all_gather)(NcclComm* comm, const void* send, void* receive, size_t count, DType dtype,
                        void* stream);
  /// Every rank sends ranks × count elements and receives `count`.
  Message (*reduce_scatter)(NcclComm* comm, const void* send, void* receive, size_t count,
                            DType dtype, NcclReduce reduce, void* stream);
  /// send_counts[r] elements go to rank r, receive_counts[r] come from it; both buffers are in the
  /// order of ranks, without gaps. One group of sends and receives.
  Message (*all_to_all)(NcclComm* comm, const void* send, const size_t* send_counts, void* receive,
                        const size_t* receive_counts, DType dtype, void* stream);
};

/// The one symbol that libstrata_nccl.so exports, of type `NcclApiFunction`.
inline constexpr const char* kNcclApiSymbol = "strata_nccl_api_1";
using NcclApiFunction = const NcclApi* (*)();

}  // namespace strata
