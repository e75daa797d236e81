#include "generate/evaluation/task_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "text/chat/jinja/values/python_text.h"

namespace snug::generate {
namespace {

base::PythonPattern pattern_of(const TaskNode& node, const std::string& pattern) {
  try {
    return base::PythonPattern(pattern);
  } catch (const std::invalid_argument& error) {
    node.fail(std::string("cannot be used: ") + error.what());
  }
}

// The first of these names under which the number of new tokens is given counts, as in the harness.
std::optional<int64_t> take_most_tokens(TaskMap& map) {
  std::optional<int64_t> most;
  for (const char* key :
       {"max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"}) {
    const std::optional<TaskNode> given = map.take(key);
    if (!given) continue;
    if (given->whole_number() < 1) given->fail("is less than 1");
    if (!most) most = given->whole_number();
  }
  return most;
}

MatchChoice match_choice(TaskMap& map) {
  const std::optional<TaskNode> pattern = map.take("regex_pattern");
  const std::string written = pattern ? pattern->text() : R"(#### (\-?[0-9\.\,]+))";
  MatchChoice choice{.pattern = pattern_of(pattern ? *pattern : map.node(), written)};
  if (const auto number = map.take("group_select")) choice.number = number->whole_number();
  choice.otherwise = map.text_or("fallback", choice.otherwise);
  return choice;
}

AnswerFilter mapped(TaskMap& map) {
  const TaskNode given =
      map.require("mapping_dict", "the filter map needs the texts that stand for others");
  if (!given.is_map()) given.fail("is no map of texts");
  std::map<std::string, std::string> mapping;
  for (const auto& entry : given.node)
    mapping.emplace(entry.first.Scalar(), TaskNode{entry.second, given.file, given.key}.text());
  const std::string otherwise =
      map.require("default_value", "the filter map needs a text for answers that are not in it")
          .text();
  return [mapping = std::move(mapping), otherwise](const std::string& answer) {
    const auto found = mapping.find(answer);
    return found == mapping.end() ? otherwise : found->second;
  };
}

// Nothing for take_first, which takes the only answer that there is.
AnswerFilter filter_of(const TaskNode& node) {
  TaskMap map(node);
  const TaskNode function = map.require("function", "each filter has the name of one");
  const std::string name = function.text();
  AnswerFilter filter;
  if (name == "regex") {
    filter = match_choice(map);
  } else if (name == "remove_whitespace") {
    filter = [](const std::string& answer) {
      return std::string(text::jinja::strip(answer, text::jinja::Side::both));
    };
  } else if (name == "lowercase") {
    filter = [](const std::string& answer) { return text::jinja::lower(answer); };
  } else if (name == "uppercase") {
    filter = [](const std::string& answer) { return text::jinja::upper(answer); };
  } else if (name == "map") {
    filter = mapped(map);
  } else if (name != "take_first") {
    function.fail(
        fmt::format("is {}, and only these filters are built: regex, remove_whitespace, "
                    "lowercase, uppercase, map, take_first",
                    name));
  }
  map.finish();
  return filter;
}

FilterChain chain_of(const TaskNode& node) {
  TaskMap map(node);
  FilterChain chain{.name = map.require("name", "each chain of filters has one").text()};
  bool is_taken = false;
  for (const TaskNode& item :
       map.require("filter", "a chain is a list of filters, such as {function: take_first}")
           .items()) {
    AnswerFilter filter = filter_of(item);
    if (filter && is_taken)
      item.fail(
          "has a filter after take_first, where the harness would take each letter of the "
          "answer by itself; put take_first last");
    is_taken = is_taken || !filter;
    if (filter) chain.filters.push_back(std::move(filter));
  }
  map.finish();
  return chain;
}

std::vector<Metric> metrics_of(OutputType output) {
  switch (output) {
    case OutputType::multiple_choice:
      return {Metric::acc, Metric::acc_norm, Metric::acc_bytes, Metric::exact_match};
    case OutputType::generate_until:
      return {Metric::exact_match};
    case OutputType::loglikelihood:
      return {Metric::perplexity, Metric::acc};
    case OutputType::loglikelihood_rolling:
      return {Metric::word_perplexity, Metric::byte_perplexity, Metric::bits_per_byte};
  }
  return {};
}

// What the harness takes where a task has no list.
std::vector<Metric> default_metrics(OutputType output) {
  std::vector<Metric> all = metrics_of(output);
  if (output == OutputType::multiple_choice) all.resize(2);
  return all;
}

std::string_view aggregation_of(Metric metric) {
  switch (metric) {
    case Metric::perplexity:
      return "perplexity";
    case Metric::word_perplexity:
    case Metric::byte_perplexity:
      return "weighted_perplexity";
    case Metric::bits_per_byte:
      return "bits_per_byte";
    default:
      return "mean";
  }
}

MatchRules match_rules(TaskMap& map) {
  MatchRules rules;
  const auto is_true = [&](const char* key) {
    const std::optional<TaskNode> given = map.take(key);
    return given && given->truth();
  };
  rules.ignores_case = is_true("ignore_case");
  rules.ignores_punctuation = is_true("ignore_punctuation");
  rules.ignores_numbers = is_true("ignore_numbers");
  if (const auto patterns = map.take("regexes_to_ignore"))
    for (const std::string& pattern : patterns->texts())
      rules.ignored.push_back(pattern_of(*patterns, pattern));
  return rules;
}

TaskMetric metric_of(const TaskNode& node, OutputType output) {
  TaskMap map(node);
  const TaskNode named = map.require("metric", "each entry of metric_list names one");
  const std::optional<Metric> metric = base::from_word<Metric>(named.text());
  const std::vector<Metric> built = metrics_of(output);
  if (!metric || std::ranges::find(built, *metric) == built.end()) {
    std::vector<std::string_view> words;
    words.reserve(built.size());
    for (const Metric one : built) words.push_back(base::word_of(one));
    named.fail(fmt::format("is {}, and for output_type {} these are built: {}", named.text(),
                           base::word_of(output), fmt::join(words, ", ")));
  }
  TaskMetric result{.metric = *metric};
  if (*metric == Metric::exact_match && output == OutputType::generate_until)
    result.match = match_rules(map);
  const std::optional<TaskNode> aggregation = map.take("aggregation");
  if (aggregation && aggregation->text() != aggregation_of(*metric))
    aggregation->fail(fmt::format("is {}, and of {} only {} is built", aggregation->text(),
                                  named.text(), aggregation_of(*metric)));
  map.pass_over({"higher_is_better"});
  // The exact_match of Hugging Face's evaluate is the same rule.
  const std::optional<TaskNode> other = map.take("hf_evaluate");
  if (other && other->truth() && *metric != Metric::exact_match)
    other->fail("takes a metric of another library, which is not built");
  map.finish();
  return result;
}

}  // namespace

AnswerRules take_answer_rules(TaskMap& task, const std::string& shot_delimiter) {
  AnswerRules rules{.until = {shot_delimiter}};
  const std::optional<TaskNode> given = task.take("generation_kwargs");
  if (!given) return rules;
  TaskMap map(*given);
  if (const auto until = map.take("until")) rules.until = until->texts();
  std::erase(rules.until, "");
  rules.max_new_tokens = take_most_tokens(map);
  if (const auto temperature = map.take("temperature")) rules.temperature = temperature->number();
  if (!std::isfinite(rules.temperature) || rules.temperature < 0)
    given->fail("needs a temperature that is a number from 0 on");
  if (const auto top_k = map.take("top_k")) rules.top_k = top_k->whole_number();
  if (const auto top_p = map.take("top_p")) rules.top_p = top_p->number();
  const bool is_share = rules.top_p > 0 && rules.top_p <= 1;  // which .nan is not
  if (rules.top_k < 0 || !is_share)
    given->fail("needs a top_k from 0 on, and a top_p above 0 and up to 1");
  const std::optional<TaskNode> samples = map.take("do_sample");
  if (samples && samples->truth() && rules.temperature == 0)
    samples->fail(
        "is true, and the temperature is 0, with which nothing is sampled; give a "
        "temperature above 0, or do_sample: false");
  if (samples && !samples->truth()) rules.temperature = 0;
  map.finish();
  return rules;
}

std::vector<FilterChain> take_filters(TaskMap& task, OutputType output) {
  const std::optional<TaskNode> given = task.take("filter_list");
  if (!given) return {FilterChain{}};
  if (output != OutputType::generate_until)
    given->fail("is about the texts of answers, which only output_type generate_until has");
  std::vector<FilterChain> chains;
  for (const TaskNode& item : given->items()) {
    chains.push_back(chain_of(item));
    const auto is_same = [&](const FilterChain& chain) { return chain.name == chains.back().name; };
    if (std::count_if(chains.begin(), chains.end(), is_same) > 1)
      item.fail(fmt::format("has two chains of the name {}", chains.back().name));
  }
  if (chains.empty()) given->fail("is empty; leave it out, and answers count as they are");
  return chains;
}

std::vector<TaskMetric> take_metrics(TaskMap& task, OutputType output) {
  std::vector<TaskMetric> metrics;
  const std::optional<TaskNode> given = task.take("metric_list");
  if (!given)
    for (const Metric metric : default_metrics(output)) metrics.push_back({.metric = metric});
  else
    for (const TaskNode& item : given->items()) {
      const TaskMetric metric = metric_of(item, output);
      if (std::ranges::find(metrics, metric.metric, &TaskMetric::metric) != metrics.end())
        item.fail(
            fmt::format("names the metric {} for the second time, and its figures have one "
                        "name; give each metric once",
                        base::word_of(metric.metric)));
      metrics.push_back(metric);
    }
  if (metrics.empty()) given->fail("is empty; leave it out for the metrics of this output_type");
  return metrics;
}

}  // namespace snug::generate
