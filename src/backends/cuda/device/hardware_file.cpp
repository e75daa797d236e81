#include "backends/cuda/device/hardware_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/nearest.h"

namespace snug::backends::cuda {
namespace {

using base::UserError;

// A value of the file, with its location for errors.
struct Entry {
  std::string file;
  std::string key;  // for example "rtx-4090.memory_gib"
  YAML::Node node;

  [[noreturn]] void fail(const std::string& problem) const {
    const YAML::Mark mark = node.Mark();
    throw UserError(fmt::format("'{}' {}", key, problem), {file, mark.line + 1, mark.column + 1});
  }
  std::string text() const {
    if (!node.IsScalar() || node.Scalar().empty()) fail("needs one value");
    return node.Scalar();
  }
  bool is_unknown() const { return node.IsScalar() && node.Scalar() == "unknown"; }
  Entry at(const std::string& name) const { return {file, key + "." + name, node[name]}; }
};

double number(const Entry& entry, double least) {
  const std::string text = entry.text();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    entry.fail(fmt::format("is '{}', which is no number", text));
  if (value < least) entry.fail(fmt::format("is {}, but must be at least {}", text, least));
  return value;
}

int whole_number(const Entry& entry, int least) {
  const double value = number(entry, least);
  if (value != std::floor(value) || value > 1e6)
    entry.fail(fmt::format("is '{}', which is no whole number up to 1000000", entry.text()));
  return static_cast<int>(value);
}

bool truth(const Entry& entry) {
  const std::string text = entry.text();
  if (text != "true" && text != "false")
    entry.fail(fmt::format("is '{}', not true or false", text));
  return text == "true";
}

int64_t bytes(const Entry& entry) {
  const std::optional<int64_t> size = base::parse_byte_size(entry.text());
  if (!size || *size == 0)
    entry.fail(fmt::format("is '{}', which is no size such as 512GiB", entry.text()));
  return *size;
}

void read_price(const Entry& entry, HardwareRow& row) {
  row.price.reset();
  if (entry.is_unknown()) return;
  if (!entry.node.IsMap()) entry.fail("needs low, high and date, or the word unknown");
  for (const auto& item : entry.node)
    if (const std::string name = item.first.Scalar();
        name != "low" && name != "high" && name != "date")
      Entry{entry.file, entry.key + "." + name, item.first}.fail(
          "is no part of a price, which has low, high and date");
  for (const char* name : {"low", "high", "date"})
    if (!entry.node[name]) entry.fail(fmt::format("lacks {}", name));
  row.price =
      Price{number(entry.at("low"), 0), number(entry.at("high"), 0), entry.at("date").text()};
  if (row.price->high < row.price->low) entry.fail("has a low end above its high end");
}

// A rate; 0 where it is unknown or the GPU cannot multiply that type.
double rate(const Entry& entry, std::string_view absent) {
  return entry.node.IsScalar() && entry.node.Scalar() == absent ? 0.0 : number(entry, 1);
}

struct RowKey {
  std::string_view name;
  bool is_required;  // whether a new row must have it
  void (*read)(const Entry&, HardwareRow&);
};

constexpr auto kRowKeys = std::to_array<RowKey>({
    {"driver_name", false, [](const Entry& e, HardwareRow& row) { row.driver_name = e.text(); }},
    {"compute_capability", true,
     [](const Entry& e, HardwareRow& row) { row.compute_capability = whole_number(e, 10); }},
    {"multiprocessors", true,
     [](const Entry& e, HardwareRow& row) { row.multiprocessors = whole_number(e, 1); }},
    {"memory_gib", true,
     [](const Entry& e, HardwareRow& row) {
       row.memory_gib = number(e, 1.5);
       if (row.memory_gib > 1e6) e.fail("is more than any card has");
     }},
    {"memory_is_confirmed", false,
     [](const Entry& e, HardwareRow& row) { row.memory_is_confirmed = truth(e); }},
    {"bf16_flops_per_second", true,
     [](const Entry& e, HardwareRow& row) { row.rates.bf16_flops_per_second = rate(e, "none"); }},
    {"f32_flops_per_second", true,
     [](const Entry& e, HardwareRow& row) { row.rates.f32_flops_per_second = number(e, 1); }},
    {"bytes_per_second", true,
     [](const Entry& e, HardwareRow& row) { row.rates.bytes_per_second = number(e, 1); }},
    {"link_bytes_per_second", true,
     [](const Entry& e, HardwareRow& row) { row.rates.host_bytes_per_second = number(e, 1); }},
    {"interconnect_bytes_per_second", false,
     [](const Entry& e, HardwareRow& row) {
       row.rates.interconnect_bytes_per_second = rate(e, "unknown");
     }},
    {"product_share", false,
     [](const Entry& e, HardwareRow& row) {
       row.rates.product_share = number(e, 0.01);
       if (row.rates.product_share > 1) e.fail("is more than the peak, which is 1");
     }},
    {"interconnect", false, [](const Entry& e, HardwareRow& row) { row.interconnect = e.text(); }},
    {"machine_devices", false,
     [](const Entry& e, HardwareRow& row) {
       row.machine_devices = e.is_unknown() ? 0 : whole_number(e, 1);
     }},
    {"machine_memory", false,
     [](const Entry& e, HardwareRow& row) {
       row.machine_memory_bytes = e.is_unknown() ? 0 : bytes(e);
     }},
    {"price", false, read_price},
    {"source", false, [](const Entry& e, HardwareRow& row) { row.source = e.text(); }},
});

const RowKey& known_key(const Entry& entry, const std::string& name) {
  const auto found = std::ranges::find(kRowKeys, name, &RowKey::name);
  if (found != kRowKeys.end()) return *found;
  std::vector<std::string_view> names(kRowKeys.size());
  std::ranges::transform(kRowKeys, names.begin(), &RowKey::name);
  const auto nearest = base::nearest_name(name, names);
  entry.fail(
      fmt::format("is no key of a device; {}", nearest ? fmt::format("did you mean '{}'?", *nearest)
                                                       : "docs/search.md lists them"));
}

void read_row(const Entry& device, HardwareRow& row, bool is_known) {
  if (!device.node.IsMap()) device.fail("needs 'key: value' lines of its own");
  std::set<std::string> given;
  for (const auto& item : device.node) {
    const Entry key{device.file, device.key + "." + item.first.Scalar(), item.first};
    const std::string name = item.first.Scalar();
    if (!given.insert(name).second) key.fail("is given twice");
    known_key(key, name).read({device.file, key.key, item.second}, row);
  }
  for (const RowKey& key : kRowKeys)
    if (key.is_required && !is_known && !given.contains(std::string(key.name)))
      device.fail(fmt::format("is not in the built-in table, so it needs {}", key.name));
}

void read_devices(const Entry& devices, std::vector<HardwareRow>& rows) {
  if (!devices.node.IsMap()) devices.fail("needs the names of devices, each with its keys");
  std::set<std::string> given;
  for (const auto& item : devices.node) {
    const std::string name = item.first.Scalar();
    if (!given.insert(name).second) Entry{devices.file, name, item.first}.fail("is given twice");
    auto row = std::ranges::find(rows, name, &HardwareRow::name);
    const bool is_known = row != rows.end();
    if (!is_known) {
      row = rows.emplace(rows.end());
      row->name = row->driver_name = name;
    }
    // An empty value has no useful location, so the key's location is used.
    const YAML::Node& at = item.second.IsNull() ? item.first : item.second;
    read_row({devices.file, name, at}, *row, is_known);
  }
}

}  // namespace

std::vector<HardwareRow> read_hardware(std::string_view yaml, const std::string& file,
                                       std::vector<HardwareRow> known) {
  YAML::Node root;
  try {
    root = YAML::Load(std::string(yaml));
  } catch (const YAML::Exception& error) {
    throw UserError("not valid YAML: " + error.msg,
                    {file, error.mark.line + 1, error.mark.column + 1});
  }
  if (!root.IsMap()) throw UserError("a table of hardware has the keys date and devices", {file});
  for (const auto& item : root) {
    const std::string name = item.first.Scalar();
    if (name == "devices")
      read_devices({file, name, item.second}, known);
    else if (name != "date")
      Entry{file, name, item.first}.fail(
          "is no key of a table of hardware, which has date and "
          "devices");
  }
  return known;
}

}  // namespace snug::backends::cuda
