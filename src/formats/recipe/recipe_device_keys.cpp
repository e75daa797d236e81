// Keys of training on several devices, with the names and words of FSDP, DeepSpeed and accelerate.
#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

using base::word_of;

constexpr double kMaxDevices = 4096;
constexpr double kMaxNodes = 65536;
constexpr double kMaxThreshold = 1e12;
constexpr double kMaxSeconds = 1e9;  // in nanoseconds this fits 64 bits

// Other tools' words for strategies: valid under every name of the key, or only under some names.
std::vector<Translation> strategy_words() {
  std::vector<Translation> list = {{"no_shard", word_of(Strategy::ddp)},
                                   {"hybrid_shard", word_of(Strategy::hybrid_full_shard)},
                                   {"hybrid_shard_zero2", word_of(Strategy::hybrid_shard_grad_op)},
                                   {"_hybrid_shard_zero2", word_of(Strategy::hybrid_shard_grad_op)},
                                   {"fsdp", word_of(Strategy::full_shard)},
                                   {"zero0", word_of(Strategy::ddp)},
                                   {"zero3", word_of(Strategy::full_shard)},
                                   {"0", word_of(Strategy::ddp), "zero_stage"},
                                   {"1", word_of(Strategy::zero1), "zero_stage"},
                                   {"2", word_of(Strategy::zero2), "zero_stage"},
                                   {"3", word_of(Strategy::full_shard), "zero_stage"}};
  for (const std::string_view name : {"sharding_strategy", "fsdp_sharding_strategy", "fsdp"}) {
    list.push_back({"full_shard", word_of(Strategy::full_shard), name});
    list.push_back({"shard_grad_op", word_of(Strategy::shard_grad_op), name});
    list.push_back({"no_shard", word_of(Strategy::ddp), name});
    list.push_back({"hybrid_shard", word_of(Strategy::hybrid_full_shard), name});
    list.push_back({"hybrid_shard_zero2", word_of(Strategy::hybrid_shard_grad_op), name});
    if (name == "fsdp") continue;
    list.push_back({"1", word_of(Strategy::full_shard), name});
    list.push_back({"2", word_of(Strategy::shard_grad_op), name});
    list.push_back({"3", word_of(Strategy::ddp), name});
    list.push_back({"4", word_of(Strategy::hybrid_full_shard), name});
    list.push_back({"5", word_of(Strategy::hybrid_shard_grad_op), name});
  }
  list.push_back({"true", word_of(Strategy::full_shard), "fsdp"});
  list.push_back({"false", word_of(Strategy::ddp), "fsdp"});
  list.push_back({"", word_of(Strategy::ddp), "fsdp"});
  return list;
}

// torch's words for the order of gathers and gradients.
std::vector<Translation> prefetch_words() {
  std::vector<Translation> list;
  for (const std::string_view name : {"", "backward_prefetch", "fsdp_backward_prefetch"}) {
    list.push_back({"backward_pre", word_of(Prefetch::pre), name});
    list.push_back({"backward_post", word_of(Prefetch::post), name});
    list.push_back({"no_prefetch", word_of(Prefetch::none), name});
  }
  return list;
}

void add_strategy_keys(KeyTable& table) {
  table
      .add<&Recipe::strategy>(
          "strategy", Strategy::ddp,
          "what each device keeps: ddp: all; zero1: its share of the optimizer state; zero2: of "
          "the gradients too; shard_grad_op: of the weights too, whole from forward to backward; "
          "full_shard: the same, whole one layer at a time; hybrid_...: the same within groups of "
          "devices, which are copies of each other. On one device all are the same")
      .aliases({"sharding_strategy", "fsdp_sharding_strategy", "zero_stage", "fsdp"})
      .translations(strategy_words())
      .side_words({{"fsdp", "auto_wrap"}, {"fsdp", "offload", "fsdp_offload_params", "true"}});
  table
      .add<&Recipe::devices>("devices", "0", "devices of a node; 0: as many as were launched, or 1")
      .range({.least = 0, .most = kMaxDevices})
      .translations({{"auto", "0"}});
  table.add<&Recipe::nodes>("nodes", "0", "machines of the job; 0: as many as were launched, or 1")
      .range({.least = 0, .most = kMaxNodes});
  table
      .add<&Recipe::shard_devices>(
          "shard_devices", "0",
          "devices in a group of the hybrid strategies; 0: all devices of a node")
      .range({.least = 0, .most = kMaxDevices});
}

void add_traffic_keys(KeyTable& table) {
  table
      .add<&Recipe::prefetch>(
          "prefetch", Prefetch::pre,
          "when the backward pass gathers the weights of the next layer: before the gradients of "
          "the present one, after them, or when it needs them; pre is fast and takes the most "
          "memory")
      .aliases({"fsdp_backward_prefetch", "backward_prefetch"})
      .translations(prefetch_words())
      .on_resume(OnResume::ignored);
  table
      .add<&Recipe::reduce_dtype>(
          "reduce_dtype", ReduceDtype::automatic,
          "type in which gradients travel between devices; auto: that of the "
          "gradients")
      .translations(
          {{"float32", word_of(ReduceDtype::fp32)}, {"bfloat16", word_of(ReduceDtype::bf16)}});
  table
      .add<&Recipe::shard_threshold>(
          "shard_threshold", "100000",
          "tensors with fewer elements than this are whole on every device, whatever the strategy")
      .aliases({"stage3_param_persistence_threshold"})
      .range({.least = 0, .most = kMaxThreshold});
  table
      .add<&Recipe::timeout_seconds>(
          "timeout_seconds", "600",
          "a device that waits longer than this for the others ends the run with an error")
      .aliases({"ddp_timeout"})
      .range({.least = 1, .most = kMaxSeconds})
      .on_resume(OnResume::ignored);
}

}  // namespace

void add_device_keys(KeyTable& table) {
  table.group("Several devices", kTraining, OnResume::free);
  add_strategy_keys(table);
  add_traffic_keys(table);
  table.add_file("deepspeed",
                 "a JSON file of DeepSpeed, whose values become those of the recipe's keys");
  table.add_file("accelerate_config",
                 "a YAML file of accelerate, with FSDP or DeepSpeed, whose values become those of "
                 "the recipe's keys");
}

}  // namespace snug::formats
