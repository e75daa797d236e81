#include "generate/evaluation/shown_documents.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "text/chat/jinja/values/compare.h"

namespace snug::generate {
namespace {

constexpr uint32_t kShotSeed = 1234;  // the harness's fewshot_random_seed

std::vector<TaskDocument> without(std::vector<TaskDocument> documents, const TaskDocument& asked) {
  std::erase_if(documents, [&](const TaskDocument& document) {
    return text::jinja::equal(document.fields, asked.fields);
  });
  return documents;
}

}  // namespace

ShownDocuments::ShownDocuments(const Task& task, std::vector<TaskDocument> documents)
    : task_(task), documents_(std::move(documents)), random_(kShotSeed) {}

std::vector<TaskDocument> ShownDocuments::sampled(const std::vector<TaskDocument>& from,
                                                  int64_t count) {
  if (count > std::ssize(from))
    throw base::UserError(fmt::format("num_fewshot is {}, and of the documents to show {} can be "
                                      "drawn from, of {} that are needed",
                                      task_.shots, from.size(), count),
                          task_.where);
  std::vector<TaskDocument> all;
  for (const size_t number : random_.sample(from.size(), static_cast<size_t>(count)))
    all.push_back(from[number]);
  return all;
}

// One more is drawn where the document that is asked may be among them.
std::vector<TaskDocument> ShownDocuments::drawn(const TaskDocument& asked) {
  if (!task_.shots_are_asked_too) return sampled(documents_, task_.shots);
  std::vector<TaskDocument> all = without(sampled(documents_, task_.shots + 1), asked);
  if (std::ssize(all) < task_.shots) all = sampled(without(documents_, asked), task_.shots);
  return all;
}

std::vector<TaskDocument> ShownDocuments::before(const TaskDocument& asked) {
  if (task_.shots == 0) return {};
  std::vector<TaskDocument> all = task_.draws_shots           ? drawn(asked)
                                  : task_.shots_are_asked_too ? without(documents_, asked)
                                                              : documents_;
  if (std::ssize(all) < task_.shots)
    throw base::UserError(fmt::format("num_fewshot is {}, and there are {} documents to show",
                                      task_.shots, all.size()),
                          task_.where);
  all.resize(static_cast<size_t>(task_.shots));
  return all;
}

}  // namespace snug::generate
