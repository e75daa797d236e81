#include "formats/foreign/accelerate_config.h"

#include "base/file.h"
#include "formats/foreign/deepspeed_config.h"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

namespace snug::formats {
namespace {

using base::word_of;

using nlohmann::json;

constexpr int64_t kMaxBytes = int64_t{1} << 20;
constexpr int kMaxYamlDepth = 16;
constexpr int kMaxYamlNodes = 10'000;
constexpr std::string_view kLaunch = "the launcher of the run says it";
constexpr std::string_view kOneDtype = "weights of every form travel as they are stored";
constexpr std::string_view kUnits = "Snug shares weights layer by layer";
constexpr std::string_view kSaving = "Snug reads and writes models and checkpoints its own way";
constexpr std::string_view kTorch = "this is of torch's own runtime";
constexpr std::string_view kNoTpu = "there is no TPU";
constexpr std::string_view kParallel =
    "each device computes whole layers; use 1, and a sharding strategy to share memory";

const std::vector<ToolWord> kOne = {{"1"}};

using Rows = std::vector<ToolKey>;

Rows machines_and_numbers() {
  return {
      {"compute_environment", "", {{"LOCAL_MACHINE"}}, "Snug runs where it is started"},
      {"distributed_type",
       "strategy",
       {{"NO"},
        {"MULTI_GPU", word_of(Strategy::ddp)},
        {"MULTI_CPU", word_of(Strategy::ddp)},
        {"FSDP"},
        {"DEEPSPEED"}},
       "other machines and other forms of parallel training are not built"},
      {"mixed_precision",
       "compute_dtype",
       {{"no", word_of(ComputeDtype::fp32)},
        {"bf16", word_of(ComputeDtype::bf16)},
        {"fp16", word_of(ComputeDtype::fp16)}},
       "fp8 compute is not built; use bf16"},
      {"num_machines", "nodes"},
      {"num_processes"},
      {"use_cpu", "backend", {{"true", word_of(BackendName::cpu)}, {"false"}}},
      {"gpu_ids", "", {}, "CUDA_VISIBLE_DEVICES says it"},
      {"machine_rank", "", {}, kLaunch},
      {"main_process_ip", "", {}, kLaunch},
      {"main_process_port", "", {}, kLaunch},
      {"rdzv_backend", "", {}, kLaunch},
      {"same_network", "", {}, kLaunch},
      {"main_training_function", "", {}, kLaunch},
      {"mpirun_config.*", "", {}, kLaunch},
      {"enable_cpu_affinity", "", {}, kLaunch},
      {"debug", "", {}, kTorch},
      {"dynamo_config.*", "", {}, kTorch},
      {"dynamo_backend", "", {}, kTorch},  // in files from before dynamo_config existed
      {"ipex_config.*", "", {}, kTorch},
      {"downcast_bf16", "", {}, kNoTpu},
      {"tpu_*", "", {}, kNoTpu},
      {"command*", "", {}, kNoTpu},
      {"fp8_config.*", "", {}, "mixed_precision does not ask for fp8"},
      {"tp_config.tp_size", "", kOne, kParallel},
      {"megatron_lm_config.*", "", kNever, "Megatron-LM's parallel training is not built"},
      {"parallelism_config.parallelism_config_dp_replicate_size", "", kOne,
       "use fsdp_sharding_strategy: HYBRID_SHARD"},
      {"parallelism_config.parallelism_config_dp_shard_size", "", {}, kLaunch},
      {"parallelism_config.parallelism_config_tp_size", "", kOne, kParallel},
      {"parallelism_config.parallelism_config_cp_size", "", kOne, kParallel},
      {"parallelism_config.parallelism_config_cp_comm_strategy", "", {}, kParallel},
      {"parallelism_config.parallelism_config_sp_size", "", kOne, kParallel},
      {"parallelism_config.parallelism_config_sp_*", "", {}, kParallel},
  };
}

Rows fsdp() {
  return {
      {"fsdp_config.fsdp_version", "", {{"1"}, {"2"}}},
      {"fsdp_config.fsdp_sharding_strategy", "fsdp_sharding_strategy"},
      {"fsdp_config.fsdp_reshard_after_forward",
       "strategy",
       {{"true", word_of(Strategy::full_shard)},
        {"false", word_of(Strategy::shard_grad_op)},
        // FSDP1 uses the words and numbers of torch's ShardingStrategy here.
        {"FULL_SHARD", word_of(Strategy::full_shard)},
        {"SHARD_GRAD_OP", word_of(Strategy::shard_grad_op)},
        {"NO_SHARD", word_of(Strategy::ddp)},
        {"HYBRID_SHARD", word_of(Strategy::hybrid_full_shard)},
        {"HYBRID_SHARD_ZERO2", word_of(Strategy::hybrid_shard_grad_op)},
        {"_HYBRID_SHARD_ZERO2", word_of(Strategy::hybrid_shard_grad_op)},
        {"1", word_of(Strategy::full_shard)},
        {"2", word_of(Strategy::shard_grad_op)},
        {"3", word_of(Strategy::ddp)},
        {"4", word_of(Strategy::hybrid_full_shard)},
        {"5", word_of(Strategy::hybrid_shard_grad_op)}}},
      {"fsdp_config.fsdp_offload_params", "fsdp_offload_params"},
      {"fsdp_config.fsdp_backward_prefetch", "fsdp_backward_prefetch"},
      {"fsdp_config.fsdp_backward_prefetch_policy", "fsdp_backward_prefetch"},
      {"fsdp_config.fsdp_activation_checkpointing", "activation_checkpointing"},
      {"fsdp_config.fsdp_auto_wrap_policy", "", {}, kUnits},
      {"fsdp_config.fsdp_transformer_layer_cls_to_wrap*", "", {}, kUnits},
      {"fsdp_config.fsdp_min_num_params", "", {}, kUnits},
      {"fsdp_config.fsdp_forward_prefetch", "", {}, "the forward pass always gathers ahead"},
      {"fsdp_config.fsdp_use_orig_params", "", {}, kOneDtype},
      {"fsdp_config.fsdp_state_dict_type", "", {}, kSaving},
      {"fsdp_config.fsdp_cpu_ram_efficient_loading", "", {}, kSaving},
      {"fsdp_config.fsdp_sync_module_states", "", {}, kSaving},
  };
}

Rows deepspeed() {
  return {
      {"deepspeed_config.zero_stage", "zero_stage"},
      {"deepspeed_config.offload_optimizer_device", "offload_optimizer_device"},
      {"deepspeed_config.offload_param_device", "offload_param_device"},
      {"deepspeed_config.offload_optimizer_nvme_path", "", {}, "no NVMe drive is used"},
      {"deepspeed_config.offload_param_nvme_path", "", {}, "no NVMe drive is used"},
      {"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"deepspeed_config.gradient_clipping", "max_grad_norm"},
      {"deepspeed_config.deepspeed_config_file"},
      {"deepspeed_config.zero3_init_flag", "", {}, kSaving},
      {"deepspeed_config.zero3_save_16bit_model", "", {}, kSaving},
      {"deepspeed_config.seq_parallel*", "", {}, kParallel},
      {"deepspeed_config.deepspeed_multinode_launcher", "", {}, kLaunch},
      {"deepspeed_config.deepspeed_hostfile", "", {}, kLaunch},
      {"deepspeed_config.deepspeed_exclusion_filter", "", {}, kLaunch},
      {"deepspeed_config.deepspeed_inclusion_filter", "", {}, kLaunch},
      {"deepspeed_config.deepspeed_moe_layer_cls_names", "", kNever,
       "mixtures of experts are not built"},
  };
}

const Rows& accelerate_keys() {
  static const Rows rows = [] {
    Rows all;
    for (const Rows& part : {machines_and_numbers(), fsdp(), deepspeed()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

// Counts nodes, since YAML aliases can make a small file expand to a huge document.
class YamlReader {
 public:
  explicit YamlReader(const std::string& file) : file_(file) {}

  json read(const YAML::Node& node, const std::string& path, int depth) {
    if (++nodes_ > kMaxYamlNodes || depth > kMaxYamlDepth)
      fail(path, "is too large or nests too deeply for a file of this kind");
    if (node.IsScalar()) return node.Scalar();
    if (node.IsSequence()) return read_list(node, path, depth);
    if (!node.IsMap()) return nullptr;
    json object = json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) fail(path, "has a key that is no word");
      const std::string& key = entry.first.Scalar();
      if (object.contains(key)) fail(key, "is given twice");
      object[key] = read(entry.second, key, depth + 1);
    }
    return object;
  }

 private:
  json read_list(const YAML::Node& node, const std::string& path, int depth) {
    json list = json::array();
    for (const YAML::Node& item : node) list.push_back(read(item, path, depth + 1));
    return list;
  }

  [[noreturn]] void fail(const std::string& path, const std::string& problem) const {
    throw base::UserError(problem, place_in(file_, path));
  }

  const std::string& file_;
  int nodes_ = 0;
};

json parse_yaml(const std::string& text, const std::string& path) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap())
      throw base::UserError("is not a file of accelerate, which is a list of 'key: value' lines",
                            {path, 0, 0});
    return YamlReader(path).read(root, "", 0);
  } catch (const YAML::Exception& error) {
    throw base::UserError("not valid YAML: " + error.msg,
                          {path, error.mark.line + 1, error.mark.column + 1});
  }
}

// accelerate counts the processes of all machines, a recipe the devices of one machine.
void add_devices(ToolConfig& config, const std::vector<Written>& settings) {
  constexpr std::string_view kProcesses = "num_processes";
  const std::string* text = find_setting(settings, kProcesses);
  if (text == nullptr || *text == "-1") return;
  const int64_t processes = count_in(settings, kProcesses);
  const bool has_machines = find_setting(settings, "num_machines") != nullptr;
  const int64_t machines = has_machines ? count_in(settings, "num_machines") : 1;
  if (processes % machines != 0)
    fail_at(settings, kProcesses,
            fmt::format("is {}, which {} machines cannot share evenly", processes, machines));
  config.settings.push_back({"devices",
                             {fmt::format("{}", processes / machines)},
                             false,
                             std::ranges::find(settings, kProcesses, &Written::name)->where});
}

void require_strategy(const ToolConfig& config, const std::vector<Written>& settings) {
  const std::string* type = find_setting(settings, "distributed_type");
  if (type == nullptr || (*type != "FSDP" && *type != "DEEPSPEED")) return;
  for (const Written& written : config.settings)
    if (find_recipe_key(written.name)->name == "strategy") return;
  fail_at(settings, "distributed_type",
          fmt::format("is {}, but the file does not say how it shares memory; give {}", *type,
                      *type == "FSDP" ? "fsdp_config.fsdp_sharding_strategy or "
                                        "fsdp_config.fsdp_reshard_after_forward"
                                      : "deepspeed_config.zero_stage"));
}

void add_deepspeed_file(ToolConfig& config, const std::vector<Written>& settings) {
  const std::string* path = find_setting(settings, "deepspeed_config.deepspeed_config_file");
  if (path == nullptr || *path == "none") return;
  const ToolConfig other = read_deepspeed_config(*path);
  for (const Written& written : other.settings) add_setting(config, written);
  config.notes.insert(config.notes.end(), other.notes.begin(), other.notes.end());
  other.mistakes.throw_if_any();
}

// With distributed_type NO, accelerate starts one process and ignores these settings.
std::vector<Written> take_what_no_says(std::vector<Written>& settings) {
  const std::string* type = find_setting(settings, "distributed_type");
  if (type == nullptr || *type != "NO") return {};
  const auto is_of_several = [](const Written& setting) {
    return setting.name.starts_with("fsdp_config.") ||
           setting.name.starts_with("deepspeed_config.") || setting.name == "num_processes" ||
           setting.name == "num_machines";
  };
  const auto first_idle =
      std::stable_partition(settings.begin(), settings.end(), std::not_fn(is_of_several));
  std::vector<Written> idle(first_idle, settings.end());
  settings.erase(first_idle, settings.end());
  return idle;
}

void note_idle(ToolConfig& config, const std::vector<Written>& idle, const std::string& file) {
  std::vector<std::string_view> paths;
  for (const Written& setting : idle)
    if (setting.items.front() != "1") paths.push_back(setting.name);
  if (!paths.empty())
    config.notes.push_back(fmt::format("{}: {}: not used: distributed_type: NO is for one process",
                                       file, fmt::join(paths, ", ")));
}

}  // namespace

ToolConfig read_accelerate_config(const std::string& path) {
  const std::string text = base::read_text_file(path, kMaxBytes);
  std::vector<Written> settings = settings_in(parse_yaml(text, path), text, path);
  // Mistakes are reported even in settings that are then ignored.
  const base::Mistakes of_all = translate_file(settings, accelerate_keys(), path).mistakes;
  const std::vector<Written> idle = take_what_no_says(settings);
  ToolConfig config = translate_file(settings, accelerate_keys(), path);
  note_idle(config, idle, path);
  base::Mistakes& mistakes = config.mistakes;
  mistakes.gather([&] { of_all.throw_if_any(); });
  mistakes.gather([&] { add_devices(config, settings); });
  mistakes.gather([&] { add_deepspeed_file(config, settings); });
  mistakes.gather([&] { require_strategy(config, settings); });
  return config;
}

}  // namespace snug::formats
