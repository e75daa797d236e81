#include "train/samples_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "train/run_folder.h"

namespace snug::train {
namespace {

formats::JsonLines open_samples(const std::filesystem::path& path, std::optional<int64_t> step) {
  return step ? formats::JsonLines::resume(path, *step) : formats::JsonLines::create(path);
}

std::string sample_line(const AnswerSample& sample, std::span<const std::string> names,
                        int64_t step) {
  nlohmann::ordered_json json{{"step", step}};
  if (!sample.set.empty()) json["set"] = sample.set;
  json["prompt"] = sample.prompt;
  json["answer"] = sample.answer;
  json["expected"] = sample.expected;
  for (size_t i = 0; i < names.size(); ++i) json["scores"][names[i]] = sample.scores[i];
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

SamplesLog::SamplesLog(const std::filesystem::path& folder, std::optional<int64_t> step)
    : lines_(open_samples(folder / RunFolder::kSamples, step)) {}

void SamplesLog::add(int64_t step, std::span<const AnswerSample> samples,
                     std::span<const std::string> names) {
  if (has_failed_) return;
  try {
    for (const AnswerSample& sample : samples) lines_.append(sample_line(sample, names, step));
  } catch (const base::UserError& error) {
    has_failed_ = true;
    base::say("{} has no more answers of this run, which goes on: {}", lines_.path().string(),
              error.what());
  }
}

std::string samples_text(std::span<const AnswerSample> samples,
                         std::span<const std::string> names) {
  std::string text;
  for (const AnswerSample& sample : samples) {
    text += fmt::format("{}prompt:   {}\nanswer:   {}\nexpected: {}\n",
                        sample.set.empty() ? "" : fmt::format("set:      {}\n", sample.set),
                        sample.prompt, sample.answer, sample.expected);
    for (size_t i = 0; i < names.size(); ++i)
      text += fmt::format("{}: {:.4f}\n", names[i], sample.scores[i]);
    text += '\n';
  }
  return text;
}

}  // namespace snug::train
