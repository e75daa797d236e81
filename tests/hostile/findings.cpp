#include "findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"

namespace snug::hostile {
namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, Tally>& tallies() {
  static std::map<std::string, Tally> all;
  return all;
}

std::string first_line_of(const char* command) {
  std::string text;
  if (FILE* pipe = ::popen(command, "r")) {
    for (int c = std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe))
      text += static_cast<char>(c);
    ::pclose(pipe);
  }
  return text;
}

std::string processor() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Json to_json(const Tally& tally) {
  Json exit_codes = Json::object();
  for (const auto& [code, count] : tally.exit_codes) exit_codes[std::to_string(code)] = count;
  Json failures = Json::array();
  for (const Finding& finding : tally.failures)
    failures.push_back({{"only", finding.trial}, {"problem", finding.problem}});
  Json result = {
      {"seed", options().seed}, {"part_of_the_long_form", options().part},
      {"date", today()},        {"commit", first_line_of("git rev-parse --short HEAD 2>/dev/null")},
      {"runs", tally.runs},     {"exit_codes", exit_codes},
      {"failures", failures}};
  if (!tally.skipped.empty()) result["skipped"] = tally.skipped;
  return result;
}

}  // namespace

Options& options() {
  static Options all;
  return all;
}

int64_t trials(int64_t in_short, int64_t in_long) {
  if (!options().only.empty()) return in_long;
  if (options().part == 0) return in_short;
  return std::llround(std::ceil(options().part * static_cast<double>(in_long)));
}

bool is_wanted(const std::string& trial) {
  return options().only.empty() || options().only == trial;
}

bool is_any_wanted(const std::string& beginning) {
  return options().only.empty() || options().only.starts_with(beginning + "/");
}

Tally& tally(const std::string& kind) { return tallies()[kind]; }

void record(const std::string& kind, const std::string& trial, int exit_code,
            const std::string& problem) {
  Tally& all = tally(kind);
  ++all.runs;
  ++all.exit_codes[exit_code];
  if (problem.empty()) return;
  all.failures.push_back({trial, problem});
  ADD_FAILURE() << problem << "\nagain with --seed=" << options().seed << " '--only=" << trial
                << "'";
}

void record_skipped(const std::string& kind, const std::string& reason) {
  tally(kind).skipped = reason;
}

void write_results(const std::filesystem::path& path) {
  Json all = Json::object();
  if (std::filesystem::exists(path)) all = Json::parse(base::read_text_file(path));
  all["what"] = "runs of tests/hostile: make test-long";
  all["machine"] = fmt::format("{}, {} cores", processor(), std::thread::hardware_concurrency());
  for (const auto& [kind, tally] : tallies()) all["kinds"][kind] = to_json(tally);
  base::write_file_atomically(path, all.dump(1) + "\n");
}

}  // namespace snug::hostile
