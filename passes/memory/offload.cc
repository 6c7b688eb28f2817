#include "passes/memory/offload.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/core/viewed_operands.h"
#include "passes/memory/offload_schedule.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// A result to offload, with the places of its copies.
struct Transfer {
  ValueId value;
  StorageReaders readers;
  NodeId last_use;       // forward; the node itself if nothing else reads the result
  NodeId await_after;    // the copy to the host is complete after this node
  NodeId reload_before;  // the copy back starts before this node
};

Status CheckTag(const Graph& graph, NodeId node) {
  if (!IsViewNode(graph, node)) return Ok();
  return Error("a view cannot be offloaded: graph {}: node {} ({}): tag what it views",
               graph.name_text(), graph.name(node), graph.op(node));
}

class Offloader {
 public:
  Offloader(Graph& graph, const Offload::Options& options)
      : graph_(graph), options_(options), schedule_(graph), rewriter_(graph), views_(graph) {}

  Result<bool> Run() {
    std::vector<Transfer> transfers;
    for (const NodeId node : graph_.nodes()) {
      if (MemoryTagOf(graph_, node) != MemoryTag::kMustCpuOffload || IsBackward(graph_, node))
        continue;
      STRATA_RETURN_IF_ERROR(CheckTag(graph_, node));
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        AddTransfer(graph_.result(node, i), transfers);
    }
    if (transfers.empty()) return false;
    LearnNames();
    for (const Transfer& transfer : transfers)
      Insert(transfer);
    views_.Update(rewriter_);
    return true;
  }

 private:
  void AddTransfer(ValueId value, std::vector<Transfer>& transfers) const {
    if (OffloadableBytes(graph_, value) == 0) return;
    for (const Use use : graph_.uses(value))
      if (graph_.op(use.user) == kOffloadOp) return;  // it is offloaded already
    StorageReaders readers = ReadersOfStorage(graph_, value, schedule_.positions());
    if (readers.backward.empty()) return;
    const NodeId node = graph_.value(value).def;
    const NodeId last_use = readers.forward.empty() ? node : readers.forward.back();
    const NodeId first_reader = readers.backward.front();
    const NodeId await_after = schedule_.AwaitAfter(node, last_use, options_.defer);
    if (schedule_.position(await_after) >= schedule_.position(first_reader)) return;
    const NodeId reload_before =
        schedule_.ReloadBefore(node, first_reader, await_after, options_.prefetch);
    transfers.push_back({.value = value,
                         .readers = std::move(readers),
                         .last_use = last_use,
                         .await_after = await_after,
                         .reload_before = reload_before});
  }

  void Insert(const Transfer& transfer) {
    const NodeId node = graph_.value(transfer.value).def;
    const TypeId type = graph_.value(transfer.value).type;
    const std::string name(graph_.value_name(transfer.value));
    const StrId device = graph_.module().types()[type].device;

    rewriter_.SetCursorAfter(node);
    const ValueId offloaded =
        Create(kOffloadOp, {transfer.value}, OnHost(type), name + "_offload", node);
    SetStream(offloaded, device);
    rewriter_.SetCursorAfter(transfer.await_after == node ? graph_.value(offloaded).def
                                                          : transfer.await_after);
    std::vector<Arg> args = {offloaded, transfer.value};
    if (const ValueId last_use = TensorOf(transfer.last_use);
        last_use.valid() && last_use != transfer.value) {
      args.emplace_back(last_use);
    }
    const ValueId kept = Create(kTransferWaitOp, args, OnHost(type), name + "_offloaded", node);
    views_.Add(kept, 0);

    rewriter_.SetCursorBefore(transfer.reload_before);
    const Arg where = Arg::Device(device.valid() ? device : graph_.module().Intern("cpu"));
    const ValueId reloaded = Create(kReloadOp, {kept, where}, type, name + "_reload", node);
    SetStream(reloaded, device);
    const NodeId first_reader = transfer.readers.backward.front();
    rewriter_.SetCursorBefore(first_reader);
    const ValueId back = Create(kTransferWaitOp, {reloaded, kept}, type, name + "_reloaded", node);
    views_.Add(back, 0);
    for (const ValueId value : {reloaded, back})
      rewriter_.SetPhase(graph_.value(value).def, Phase::kBackward);
    Redirect(transfer, back);
  }

  ValueId Create(std::string_view op, const std::vector<Arg>& args, TypeId type,
                 const std::string& name, NodeId from) {
    const TypeId types[] = {type};
    const NodeId node = rewriter_.Create(
        {.op = op, .args = args, .results = types, .name = FreeName(name)}, From{from});
    return graph_.result(node);
  }

  /// Backward reads `back` instead, and clones of views instead of views.
  void Redirect(const Transfer& transfer, ValueId back) {
    std::map<ValueId, ValueId> replaced = {{transfer.value, back}};
    rewriter_.SetCursorBefore(transfer.readers.backward.front());
    for (const NodeId view : NeededViews(transfer)) {
      const NodeId clone = rewriter_.Clone(view);
      rewriter_.SetName(clone, FreeName(fmt::format("{}_reloaded", graph_.name(view))));
      rewriter_.SetPhase(clone, Phase::kBackward);
      rewriter_.SetAttribute(clone, kMemoryTagAttribute, "");
      RedirectOperands(clone, replaced);
      for (size_t i = 0; i < graph_.node(view).num_results; ++i) {
        const ValueId from = graph_.result(view, i), to = graph_.result(clone, i);
        if (graph_.value(from).name.valid())
          rewriter_.SetElementName(to,
                                   FreeName(fmt::format("{}_reloaded", graph_.value_name(from))));
        views_.Copy(from, to);
        replaced.emplace(from, to);
      }
    }
    for (const NodeId reader : transfer.readers.backward)
      RedirectOperands(reader, replaced);
  }

  /// Those that backward reads, or further views that it reads.
  std::vector<NodeId> NeededViews(const Transfer& transfer) const {
    std::set<NodeId> needed;
    const std::vector<NodeId>& views = transfer.readers.views;
    for (auto view = views.rbegin(); view != views.rend(); ++view) {
      for (size_t i = 0; i < graph_.node(*view).num_results; ++i) {
        for (const Use use : graph_.uses(graph_.result(*view, i)))
          if (IsBackward(graph_, use.user) || needed.contains(use.user)) needed.insert(*view);
      }
    }
    std::vector<NodeId> ordered = views;
    std::erase_if(ordered, [&](NodeId view) { return !needed.contains(view); });
    return ordered;
  }

  void RedirectOperands(NodeId node, const std::map<ValueId, ValueId>& replaced) {
    const std::vector<ValueId> operands = graph_.operands(node);
    for (const ValueId operand : std::set<ValueId>(operands.begin(), operands.end())) {
      const auto found = replaced.find(operand);
      if (found == replaced.end()) continue;
      std::vector<Use> uses;
      for (const Use use : graph_.uses(operand))
        if (use.user == node) uses.push_back(use);
      for (const Use use : uses)
        rewriter_.ReplaceUse(use, found->second);
    }
  }

  TypeId OnHost(TypeId type) {
    Type host = graph_.module().types()[type];
    if (!host.device.valid() || graph_.module().str(host.device) == "cpu") return type;
    host.device = graph_.module().Intern("cpu");
    return graph_.module().types().Intern(host);
  }

  void SetStream(ValueId copy, StrId device) {
    if (device.valid() && graph_.module().str(device) != "cpu")
      rewriter_.SetStream(graph_.value(copy).def, Offload::kTransferStream);
  }

  /// A result of a node that is a tensor; none: it has none.
  ValueId TensorOf(NodeId node) const {
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const TypeId type = graph_.value(graph_.result(node, i)).type;
      if (type.valid() && graph_.module().types()[type].kind == TypeKind::kTensor)
        return graph_.result(node, i);
    }
    return {};
  }

  void LearnNames() {
    for (const NodeId node : graph_.nodes()) {
      names_.emplace(graph_.name(node));
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        names_.emplace(graph_.value_name(graph_.result(node, i)));
    }
  }

  /// `base`, or the first of `base_1`, `base_2`, … that nothing has.
  std::string FreeName(const std::string& base) {
    std::string name = base;
    for (int number = 1; !names_.insert(name).second; ++number)
      name = fmt::format("{}_{}", base, number);
    return name;
  }

  Graph& graph_;
  const Offload::Options& options_;
  const OffloadSchedule schedule_;
  Rewriter rewriter_;
  ViewedOperands views_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<Changed> Offload::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool offloaded, Offloader(module.graph(id), options_).Run());
    changed |= offloaded;
  }
  return Changed(changed);
}

}  // namespace strata
