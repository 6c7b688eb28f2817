#include "runtime/ranks/lone_rank.h"

#include <utility>

#include <c10/util/Exception.h>

namespace strata {

class LoneRank::Member final : public RankGroup {
 public:
  using RankGroup::RankGroup;

  std::vector<ByteSpan> Exchange(Offer offer) override {
    TORCH_CHECK(false, offer.call, " over ", name(), " needs other ranks");
  }
  void Leave() override {}
};

LoneRank::LoneRank(Mesh mesh) : RankTeam(std::move(mesh)) {
  BindThread(0);
}

LoneRank::~LoneRank() {
  BindThread(-1);
}

void LoneRank::SendFrom(int64_t /*rank*/, int64_t to, const std::string& key,
                        std::vector<at::Tensor> /*tensors*/) {
  TORCH_CHECK(false, "no rank ", to, " to send ", key, " to");
}

std::vector<at::Tensor> LoneRank::ReceiveAt(int64_t /*rank*/, int64_t from,
                                            const std::string& key) {
  TORCH_CHECK(false, "no rank ", from, " that sends ", key);
}

RankGroup& LoneRank::JoinGroup(std::string name, std::vector<int64_t> ranks, size_t index) {
  return *groups_.emplace_back(std::make_unique<Member>(std::move(name), std::move(ranks), index));
}

}  // namespace strata
