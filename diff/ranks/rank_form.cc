#include "diff/ranks/rank_form.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "diff/graph/hash.h"
#include "diff/graph/listing.h"
#include "diff/ranks/shard_choice.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// Arguments that distinguish shards, by operator without overload.
struct RankArguments {
  std::string_view op;
  uint32_t positions = 0;          // a bit each; kAll: every argument, by position or name
  std::string_view keywords = {};  // names, where arguments are given by name
};
constexpr uint32_t kAll = ~uint32_t{0};
constexpr RankArguments kRankArguments[] = {
    {"add", 0b11, "other"},
    {"arange", 0b11, "start end"},
    {"as_strided", 0b1000, "storage_offset"},
    {"clamp", 0b110, "min max"},
    {"clamp_max", 0b10, "max"},
    {"clamp_min", 0b10, "min"},
    {"constant_pad_nd", 0b10, "pad"},
    {"eq", 0b11, "other"},
    {"fill", 0b10, "value"},
    {"fill_", 0b10, "value"},
    {"full", 0b10, "fill_value"},
    {"full_like", 0b10, "fill_value"},
    {"ge", 0b11, "other"},
    {"gt", 0b11, "other"},
    {"iadd", 0b11, "other"},
    {"iota", 0, "start"},
    {"le", 0b11, "other"},
    {"lt", 0b11, "other"},
    {"masked_fill", 0b100, "value"},
    {"masked_fill_", 0b100, "value"},
    {"narrow", 0b100, "start"},
    {"ne", 0b11, "other"},
    {"new_full", 0b100, "fill_value"},
    {"pad", 0b10, "pad"},
    {"roll", 0b10, "shifts"},
    {"rsub", 0b11, "other"},
    {"scalar_tensor", 0b1, "s"},
    {"select", 0b100, "index"},
    {"select_backward", 0b1000, "index"},
    {"select_scatter", 0b1000, "index"},
    {"slice", 0b1100, "start end"},
    {"slice_backward", 0b11000, "start end"},
    {"slice_scatter", 0b11000, "start end"},
    {"sub", 0b11, "other"},
};

/// All integers of operators whose peers are ranks, and what is split unevenly among ranks.
bool NamesRanks(std::string_view base) {
  static constexpr std::string_view kWords[] = {"send", "recv", "all_to_all", "permute"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return base.find(word) != std::string_view::npos; });
}

RankArguments RankArgumentsOf(std::string_view op) {
  const std::string_view base = BaseName(op);
  if (NamesRanks(base)) return {.op = base, .positions = kAll};
  const auto found = std::ranges::find(kRankArguments, base, &RankArguments::op);
  return found == std::end(kRankArguments) ? RankArguments{.op = base} : *found;
}

bool IsRankPosition(const RankArguments& arguments, size_t position) {
  return position < 32 && (arguments.positions >> position & 1) != 0;
}

bool IsRankKeyword(const RankArguments& arguments, std::string_view name) {
  if (arguments.positions == kAll) return true;
  return std::ranges::any_of(std::views::split(arguments.keywords, ' '), [&](const auto& word) {
    return std::string_view(word.begin(), word.end()) == name;
  });
}

bool TakesGroups(std::string_view op) {
  return op.find("c10d") != std::string_view::npos || TraitsOf(op).collective;
}

/// Reduce operations are words; groups are names of any kind.
bool IsReduceOp(std::string_view text) {
  static constexpr std::string_view kOps[] = {"sum",     "avg",  "max", "min",
                                              "product", "band", "bor", "bxor"};
  return std::ranges::find(kOps, text) != std::end(kOps);
}

/// Whether an argument is the name of a process group.
bool IsGroup(const Listing& listing, EntityId id, size_t position) {
  const Graph& graph = listing.graph(id);
  const std::span<const Arg> args = graph.args(listing[id].node);
  return TakesGroups(listing.target(id)) && position < args.size() &&
         args[position].kind() == ArgKind::kString &&
         !IsReduceOp(graph.module().str(args[position].str()));
}

/// A printed argument with `#` for each integer: `slice(#, #, None)`. 0.5 and x_1 have none.
std::string WithoutIntegers(std::string_view text) {
  const auto in_word = [](char c) { return IsWordChar(c) || c == '-' || c == '.'; };
  std::string rest;
  for (size_t i = 0, end = 0; i < text.size(); i = std::max(end, i + 1)) {
    end = i;
    while (end < text.size() && in_word(text[end]))
      ++end;
    const std::string_view word = text.substr(i, std::max(end, i + 1) - i);
    const std::string_view digits = word.substr(word[0] == '-' ? 1 : 0);
    rest += !digits.empty() && std::ranges::all_of(digits, IsDigit) ? "#" : word;
  }
  return rest;
}

std::string_view WithoutIndex(std::string_view device) {
  return device.substr(0, device.find(':'));
}

class FormMaker {
 public:
  /// Called for each site, if set.
  using Watch = std::function<void(EntityId id, const std::string& path)>;

  explicit FormMaker(const Graph& graph, Watch watch = {})
      : listing_(graph), module_(graph.module()), watch_(std::move(watch)) {}

  RankForm Run() {
    uint64_t hi = 1, lo = 2;
    for (EntityId id : listing_.ids()) {
      const uint64_t hash = HashOf(id);
      hi = Mix(hi, hash);
      lo = Mix(Spread(lo), hash);
    }
    form_.hash = {hi, lo};
    return std::move(form_);
  }

 private:
  struct Op {
    uint64_t hash = 0;
    RankArguments arguments;
    bool takes_groups = false;
  };

  const Op& OpOf(StrId id) {
    const auto [found, is_new] = ops_.try_emplace(id);
    if (is_new && id.valid()) {
      const std::string_view name = module_.str(id);
      found->second = {HashText(name), RankArgumentsOf(name), TakesGroups(name)};
    }
    return found->second;
  }

  uint64_t HashOf(EntityId id) {
    const Entity& entity = listing_[id];
    const Graph& graph = listing_.graph(id);
    const Node& node = graph.node(entity.node);
    uint64_t hash = static_cast<uint64_t>(entity.kind) + 1;
    const ValueId value = listing_.value(id);
    if (value.valid()) hash = Mix(hash, HashOfType(graph.value(value).type));
    if (entity.element.valid()) {
      hash = Mix(hash, static_cast<uint64_t>(listing_.Find(entity.graph, entity.node).index));
      const uint32_t index = graph.result_index(entity.element);
      if (!TakesOneShard(graph, entity.node)) return Mix(hash, index);
      AddSite(id, index, [] { return std::string("args[1]"); });
      return hash;
    }
    const Op& op = OpOf(node.op);
    id_ = id;
    graph_ = &graph;
    op_ = &op;
    hash = Mix(hash, op.hash);
    const std::span<const Arg> args = graph.args(entity.node);
    const std::optional<ShardPlace> place = PlaceOfShard(graph, entity.node);
    if (place) {
      AddSite(id, static_cast<int64_t>(place->position), [] { return std::string("args[0]"); });
      hash = Mix(hash, static_cast<uint64_t>(listing_.FindValue(graph.id(), place->shard).index));
    }
    const bool is_chosen =
        BaseName(graph.op(entity.node)) == "getitem" && TakesOneShard(graph, entity.node);
    for (size_t i = 0; i < args.size(); ++i) {
      if (place && i == 0) {
        hash = Mix(hash, graph.elements(args[0]).size());
        continue;
      }
      if (is_chosen && i == 1 && args[i].kind() == ArgKind::kInt) {
        AddSite(id, args[i].as_int(), [] { return std::string("args[1]"); });
        continue;
      }
      const bool is_site = IsRankPosition(op.arguments, i);
      hash = Mix(hash, HashOfArg(args[i], is_site, [&] { return fmt::format("args[{}]", i); }));
    }
    uint64_t keywords = 0;
    for (size_t i = 0; i < node.num_kwargs; ++i) {
      const NamedArg kwarg = graph.kwarg(entity.node, i);
      const std::string_view name = module_.str(kwarg.name);
      const auto path = [&] { return fmt::format("kwargs.{}", name); };
      const bool is_site = IsRankKeyword(op.arguments, name);
      keywords += Mix(HashText(name), HashOfArg(kwarg.value, is_site, path));
    }
    return Mix(hash, keywords);
  }

  template <class Path>
  void AddSite(EntityId id, int64_t value, const Path& path) {
    form_.values.push_back(value);
    if (watch_) watch_(id, path());
  }

  template <class Path>
  uint64_t HashOfArg(const Arg& arg, bool is_site, const Path& path) {
    const uint64_t kind = static_cast<uint64_t>(arg.kind()) + 0x100;
    switch (arg.kind()) {
      case ArgKind::kNone:
        return kind;
      case ArgKind::kValue:
        return Mix(kind,
                   static_cast<uint64_t>(listing_.FindValue(graph_->id(), arg.value()).index));
      case ArgKind::kInt:
        if (!is_site) return Mix(kind, static_cast<uint64_t>(arg.as_int()));
        AddSite(id_, arg.as_int(), path);
        return kind;
      case ArgKind::kFloat:
        return Mix(kind, std::bit_cast<uint64_t>(arg.as_float()));
      case ArgKind::kBool:
        return Mix(kind, arg.as_bool() ? 1 : 0);
      case ArgKind::kDim: {
        std::string text;
        module_.dims().PrintCanonical(arg.dim(), text);
        return Mix(kind, HashText(text));
      }
      case ArgKind::kString:
        if (op_->takes_groups && !IsReduceOp(module_.str(arg.str())))
          return Mix(kind, GroupIndex(module_.str(arg.str())));
        return Mix(kind, HashText(module_.str(arg.str())));
      case ArgKind::kDevice:
        return Mix(kind, HashText(Device(module_.str(arg.str()))));
      case ArgKind::kRaw:
        return Mix(kind, HashText(module_.str(arg.str())));
      case ArgKind::kDType:
        return Mix(kind, static_cast<uint64_t>(arg.dtype()));
      case ArgKind::kGraph:
        return kind;  // its nodes follow in the listing
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kCall: {
        const std::span<const Arg> parts = graph_->elements(arg);
        // x[2:4] of dynamo's graphs; its bounds are sites wherever they stand.
        const bool is_slice = arg.kind() == ArgKind::kCall && !parts.empty() &&
                              module_.str(parts[0].str()) == "slice";
        const bool is_call = arg.kind() == ArgKind::kCall;
        uint64_t hash = Mix(kind, parts.size());
        for (size_t i = 0; i < parts.size(); ++i) {
          // The leaf of a call is the whole call.
          const auto inner = [&] { return is_call ? path() : fmt::format("{}[{}]", path(), i); };
          hash = Mix(hash, HashOfPart(parts[i], is_site || is_slice, inner));
        }
        return hash;
      }
    }
    return kind;
  }
  /// Paths of nested arguments have a type of their own, without end; here it ends.
  uint64_t HashOfPart(const Arg& arg, bool is_site, const std::function<std::string()>& path) {
    return HashOfArg(arg, is_site, path);
  }

  uint64_t GroupIndex(std::string_view name) {
    const auto known = std::ranges::find(form_.groups, name);
    const auto index = static_cast<uint64_t>(known - form_.groups.begin());
    if (known == form_.groups.end()) form_.groups.emplace_back(name);
    return index;
  }

  std::string_view Device(std::string_view device) {
    const std::string_view kind = WithoutIndex(device);
    if (kind.size() < device.size() && !form_.device) {
      int64_t index = 0;
      for (char c : device.substr(kind.size() + 1))
        index = index * 10 + (c - '0');
      form_.device = index;
    }
    return kind;
  }

  uint64_t HashOfType(TypeId id) {
    if (!id.valid()) return 0;
    const auto [found, is_new] = types_.try_emplace(id, 0);
    if (!is_new) return found->second;
    const Type& type = module_.types()[id];
    uint64_t hash = Mix(static_cast<uint64_t>(type.kind) + 1, static_cast<uint64_t>(type.dtype));
    if (type.text.valid()) hash = Mix(hash, HashText(module_.str(type.text)));
    const auto add = [&](DimId dim) {
      std::string text;
      if (dim.valid()) module_.dims().PrintCanonical(dim, text);
      hash = Mix(hash, HashText(text));
    };
    add(type.dim);
    for (DimId size : type.sizes)
      add(size);
    for (DimId stride : type.strides)
      add(stride);
    if (type.device.valid()) hash = Mix(hash, HashText(Device(module_.str(type.device))));
    for (const Placement& placement : type.placements) {
      hash = Mix(hash, static_cast<uint64_t>(placement.kind));
      hash = Mix(hash, static_cast<uint64_t>(placement.dim));
      hash = Mix(hash, static_cast<uint64_t>(placement.split));
    }
    return types_[id] = hash;
  }

  const Listing listing_;
  const Module& module_;
  const Watch watch_;
  RankForm form_;
  std::unordered_map<StrId, Op> ops_;
  std::unordered_map<TypeId, uint64_t> types_;
  // Of the node that is being hashed.
  EntityId id_;
  const Graph* graph_ = nullptr;
  const Op* op_ = nullptr;
};

}  // namespace

RankForm RankFormOf(const Graph& graph) {
  return FormMaker(graph).Run();
}

std::vector<RankSite> RankSitesOf(const Graph& graph) {
  std::vector<RankSite> sites;
  const Listing listing(graph);
  FormMaker(graph, [&](EntityId id, const std::string& path) {
    sites.push_back({listing.name(id), path, NamesRanks(BaseName(listing.target(id)))});
  }).Run();
  return sites;
}

std::set<int64_t> SizesOf(const Graph& graph) {
  const Listing listing(graph);
  const Module& module = graph.module();
  std::set<int64_t> sizes;
  const auto add = [&](DimId dim) -> int64_t {
    const std::optional<int64_t> hint = dim.valid() ? module.dims().Hint(dim) : std::nullopt;
    if (hint) sizes.insert(*hint);
    return hint.value_or(0);
  };
  for (EntityId id : listing.ids()) {
    const ValueId value = listing.value(id);
    const TypeId type_id = value.valid() ? listing.graph(id).value(value).type : TypeId{};
    if (!type_id.valid()) continue;
    const Type& type = module.types()[type_id];
    int64_t elements = 1;
    for (DimId size : type.sizes)
      elements *= add(size);
    if (!type.sizes.empty()) sizes.insert(elements);
    for (DimId stride : type.strides)
      add(stride);
  }
  if (!sizes.empty()) sizes.insert(1);
  return sizes;
}

bool MayDifferByRank(const GraphDiff& diff, const Pair& pair, const FieldDiff& field) {
  static constexpr std::string_view kKeywords = "kwargs.";
  const Listing& listing = diff.before;
  const std::string_view op = listing.target(pair.before), path = field.path;
  if (path == "device") return true;
  if (path.starts_with("operands["))
    return PlaceOfShard(listing.graph(pair.before), listing[pair.before].node).has_value();
  if (path.starts_with("kwargs.group")) return TakesGroups(op);
  if (!field.before || !field.after) return false;
  const auto differ_in_integers = [&] {
    return WithoutIntegers(*field.before) == WithoutIntegers(*field.after);
  };
  if (path.starts_with(kKeywords)) {
    const std::string_view name = path.substr(kKeywords.size());
    return IsRankKeyword(RankArgumentsOf(op), name.substr(0, name.find('['))) &&
           differ_in_integers();
  }
  if (!path.starts_with("args[")) return false;
  size_t position = 0;
  std::from_chars(path.data() + 5, path.data() + path.size(), position);
  const bool is_group = IsGroup(listing, pair.before, position);
  if (is_group && IsGroup(diff.after, pair.after, position)) return true;
  const bool is_site =
      BaseName(op) == "getitem" ? position == 1 : IsRankPosition(RankArgumentsOf(op), position);
  return is_site && differ_in_integers();
}

}  // namespace strata
