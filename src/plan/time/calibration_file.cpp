#include "plan/time/calibration_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/threads.h"
#include "program/work/target.h"

namespace snug::plan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "snug calibration 4";
constexpr std::string_view kFormatName = "snug calibration";
constexpr const char* kFullGrid = "full";
constexpr const char* kQuickGrid = "quick";
constexpr const char* kIdle = "idle";
constexpr const char* kBusy = "busy";

// The first value of each key of /proc/cpuinfo; empty where there is none.
std::map<std::string, std::string> cpu_information() {
  std::map<std::string, std::string> values;
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line) && !line.empty();) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t end = line.find_last_not_of(" \t", colon - 1);
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) values[line.substr(0, end + 1)] = line.substr(begin);
  }
  return values;
}

std::string cpu_name() {
  std::map<std::string, std::string> values = cpu_information();
  if (!values.contains("model name")) return "unknown";
  return fmt::format("{}, family {} model {} stepping {}", values["model name"],
                     values["cpu family"], values["model"], values["stepping"]);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// "intel-r-xeon-r-processor": the model's name as a file name.
std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text.substr(0, text.find(','))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      result += static_cast<char>(std::tolower(byte));
    else if (!result.empty() && result.back() != '-')
      result += '-';
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

std::string file_name(std::string_view what, const MachineIdentity& machine) {
  const std::string identity = machine.processor + "|" + machine.target + "|" + machine.libraries;
  return fmt::format("{}-{}-{:08x}.json", what, slug(machine.processor),
                     base::hash_name(identity.data(), identity.size()) >> 32);
}

RateSample sample_of(const base::JsonObject& object) {
  RateSample sample;
  sample.name = object.text("operation");
  const std::string text = object.text("unit");
  const auto unit = base::from_word<Work>(text);
  if (!unit)
    object.fail("unit", fmt::format("is \"{}\"; expected {}", text,
                                    fmt::join(base::all_words<Work>(), ", ")));
  sample.unit = *unit;
  const nlohmann::json& shape = object.value()["shape"];
  const bool numbers = shape.is_array() && !shape.empty() && shape.size() <= 4 &&
                       std::ranges::all_of(shape, [](const nlohmann::json& size) {
                         return size.is_number() && size.get<double>() > 0;
                       });
  if (!numbers) object.fail("shape", "must be a list of one to four positive numbers");
  for (const nlohmann::json& size : shape) sample.shape.push_back(size.get<double>());
  sample.work = object.number("work");
  sample.seconds = object.number("seconds");
  if (!(sample.work > 0) || !(sample.seconds > 0))
    object.fail("seconds", "and work must be above zero");
  if (sample.unit != Work::flops) return sample;
  const std::string type = object.text("multiplies");
  const auto multiplies = base::from_word<base::DType>(type);
  if (!multiplies || !base::is_float(*multiplies))
    object.fail("multiplies", fmt::format("is \"{}\"; expected a type of floats", type));
  sample.multiplies = *multiplies;
  return sample;
}

// Names decide which samples are compared, so all of one name have one number of dimensions.
void check_dimensions(const Calibration& calibration, const std::string& file) {
  std::map<std::string_view, size_t> dimensions;
  for (const RateSample& sample : calibration.samples) {
    const auto [entry, is_new] = dimensions.try_emplace(sample.name, sample.shape.size());
    if (!is_new && entry->second != sample.shape.size())
      base::throw_user_error(
          "{}: \"{}\" has shapes of {} and of {} sizes; make the file again with 'snug bench "
          "calibrate'",
          file, sample.name, entry->second, sample.shape.size());
  }
}

}  // namespace

MachineIdentity identify_machine(const program::Target& target) {
  const auto device = target.device();
  return {.processor = device ? device->name : cpu_name(),
          .target = target.name(),
          .libraries = target.library_versions(),
          .date = utc_now()};
}

// One sample a line: the file is read by people too.
std::string to_json(const Calibration& calibration) {
  const MachineIdentity& machine = calibration.machine;
  const Json head = {{"cpu", machine.processor},
                     {"target", machine.target},
                     {"libraries", machine.libraries},
                     {"date", machine.date}};
  std::string text = fmt::format(
      "{{\n\"format\": \"{}\",\n\"grid\": \"{}\",\n\"load\": \"{}\",\n\"machine\": "
      "{},\n\"samples\": [",
      kFormat, calibration.quick ? kQuickGrid : kFullGrid, calibration.busy ? kBusy : kIdle,
      head.dump());
  const char* separator = "\n";
  for (const RateSample& sample : calibration.samples) {
    Json line = {{"operation", sample.name},
                 {"shape", sample.shape},
                 {"unit", base::word_of(sample.unit)},
                 {"work", sample.work},
                 {"seconds", sample.seconds}};
    if (sample.unit == Work::flops) line["multiplies"] = base::name_of(sample.multiplies);
    text += separator + line.dump();
    separator = ",\n";
  }
  return text + "\n]\n}\n";
}

Calibration read_calibration(const fs::path& path) {
  const nlohmann::json json = base::read_json_file(path);
  const base::JsonObject root(json, path.string());
  if (root.text("format") != kFormat)
    root.fail("format", fmt::format("is \"{}\"; this snug reads \"{}\": make the file again with "
                                    "'snug bench calibrate'",
                                    root.text("format"), kFormat));
  const base::JsonObject machine = root.object("machine");
  Calibration calibration;
  calibration.quick = root.text_or("grid", kFullGrid) == kQuickGrid;
  calibration.busy = root.text_or("load", kIdle) == kBusy;
  calibration.machine = {.processor = machine.text("cpu"),
                         .target = machine.text("target"),
                         .libraries = machine.text("libraries"),
                         .date = machine.text("date")};
  if (!root.has("samples") || !json["samples"].is_array() || json["samples"].empty())
    root.fail("samples", "must be a list of measured operations that is not empty");
  for (const nlohmann::json& sample : json["samples"])
    calibration.samples.push_back(sample_of(base::JsonObject(sample, path.string(), "samples")));
  check_dimensions(calibration, path.string());
  return calibration;
}

void require_replaceable(const fs::path& path) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) return;
  const nlohmann::json json = base::read_json_file(path);
  const base::JsonObject root(json, path.string());
  if (!root.text_or("format", "").starts_with(kFormatName))
    root.fail("format", fmt::format("is not \"{} ...\", so the file is no calibration to write "
                                    "over; choose another name",
                                    kFormatName));
}

fs::path calibration_path(const formats::Recipe& recipe, const MachineIdentity& machine) {
  if (!recipe.calibration.empty()) return recipe.calibration;
  return base::cache_folder() / file_name("calibration", machine);
}

fs::path quick_calibration_path(const MachineIdentity& machine) {
  return base::cache_folder() / file_name("quick-calibration", machine);
}

namespace {

CalibrationFile named_calibration(const formats::Recipe& recipe, const program::Target& target) {
  const fs::path path = recipe.calibration;
  std::error_code error;
  if (fs::exists(path, error)) {
    Calibration calibration = read_calibration(path);
    if (calibration.machine.target != target.name())
      recipe.fail(
          "calibration",
          fmt::format("names {}, which was measured with backend={}, and this plan is for {}",
                      path.string(), calibration.machine.target, target.name()));
    return {path, std::move(calibration)};
  }
  if (error) base::throw_system_error("read", path, error.value());
  recipe.fail("calibration",
              fmt::format("names {}, which is not there; make it with 'snug bench calibrate "
                          "calibration={}', or leave the key out",
                          path.string(), path.string()));
}

// A home that cannot be looked into has no calibration that a plan could find there.
std::optional<CalibrationFile> calibration_of(const fs::path& path,
                                              const MachineIdentity& machine) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  Calibration calibration = read_calibration(path);
  if (!calibration.machine.same_machine(machine)) return std::nullopt;
  return CalibrationFile{path, std::move(calibration)};
}

std::optional<CalibrationFile> cached_calibration(const formats::Recipe& recipe,
                                                  const MachineIdentity& machine) {
  if (auto found = calibration_of(calibration_path(recipe, machine), machine)) return found;
  try {
    auto quick = calibration_of(quick_calibration_path(machine), machine);
    return quick && !quick->calibration.busy ? std::move(quick) : std::nullopt;
  } catch (const base::UserError&) {
    return std::nullopt;  // nobody made it who could be told to make it again
  }
}

}  // namespace

std::optional<CalibrationFile> find_calibration_file(const formats::Recipe& recipe,
                                                     const program::Target& target) {
  if (!recipe.calibration.empty()) return named_calibration(recipe, target);
  return cached_calibration(recipe, identify_machine(target));
}

std::optional<Rates> find_calibration(const formats::Recipe& recipe,
                                      const program::Target& target) {
  const std::optional<program::DeviceFacts> device = target.device();
  std::optional<CalibrationFile> found = find_calibration_file(recipe, target);
  if (!found) return std::nullopt;
  return Rates(std::move(found->calibration.samples),
               device ? device->rates : program::DataSheetRates{},
               found->calibration.quick ? Basis::calibrated_quickly : Basis::calibrated);
}

bool remove_if_busy(const fs::path& quick_file) {
  try {
    std::error_code error;
    if (!fs::exists(quick_file, error) || !read_calibration(quick_file).busy) return false;
    return fs::remove(quick_file, error);
  } catch (const base::UserError&) {
    return false;  // it is no calibration
  }
}

bool is_of_links(const RateSample& sample) {
  return sample.unit == Work::interconnect_bytes || sample.unit == Work::network_bytes ||
         sample.name.starts_with(kRankMemory);
}

void replace_samples(Calibration& calibration, std::vector<RateSample> measured) {
  std::set<std::string, std::less<>> names;
  for (const RateSample& sample : measured) names.insert(sample.name);
  std::erase_if(calibration.samples,
                [&](const RateSample& sample) { return names.contains(sample.name); });
  std::ranges::move(measured, std::back_inserter(calibration.samples));
}

Rates rates_for(const formats::Recipe& recipe, const program::Target& target) {
  std::optional<Rates> rates = find_calibration(recipe, target);
  if (const auto device = target.device(); !rates && device)
    rates = Rates::of_data_sheet(device->rates);
  if (!rates) rates = Rates::assumed(static_cast<int>(recipe.threads));
  rates->share_machine(recipe.devices);
  if (!target.device())
    rates->share_processors(
        recipe.devices,
        share_processors(recipe.devices, base::thread_count(recipe.threads), processors_here()));
  return std::move(*rates);
}

}  // namespace snug::plan
