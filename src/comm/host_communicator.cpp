#include "comm/host_communicator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace snug::comm {
namespace {

// Time to tell the other ranks that this one stops.
constexpr auto kAbortTime = std::chrono::seconds(2);
// How long to wait for lower ranks to announce the error that they end with. A rank that waits for
// another sees at once that it is gone, before that announcement arrives.
constexpr auto kLastWordsTime = std::chrono::seconds(1);
// The exit code of a rank that found others missing, which is not the user's mistake.
constexpr int kFoundMissing = 1;
// A rank that ends tells others its exit code, at the end of the reason after this character. No
// error text holds this character, since base::UserError escapes it.
constexpr char kCode = '\0';

std::string with_code(const std::string& reason, int exit_code) {
  return reason + kCode + std::to_string(exit_code);
}

std::string_view without_code(std::string_view reason) {
  return reason.substr(0, reason.find(kCode));
}

int code_of(std::string_view reason) {
  const size_t mark = reason.find(kCode);
  if (mark == std::string_view::npos) return base::UserError::kExitCode;
  return std::stoi(std::string(reason.substr(mark + 1)));
}

[[noreturn]] void throw_error(const Failure& failure) {
  throw OtherRankError(std::string(without_code(failure.reason)), code_of(failure.reason),
                       failure.announced);
}

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

HostCommunicator::HostCommunicator(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      collectives_(*transport_),
      exceptions_(std::uncaught_exceptions()),
      worker_([this] { run_worker(); }) {}

HostCommunicator::~HostCommunicator() {
  if (std::uncaught_exceptions() > exceptions_) abort("it ended with an error");
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

Ticket HostCommunicator::begin_all_gather(std::span<const GatherPart> parts,
                                          std::string_view what) {
  return begin({Gather{{parts.begin(), parts.end()}}, std::string(what), {}, 0});
}

Ticket HostCommunicator::begin_reduce_scatter(std::span<const ReducePart> parts,
                                              const SumPieces& pieces, std::string_view what) {
  return begin({Reduce{{parts.begin(), parts.end()}, pieces}, std::string(what), {}, 0});
}

Ticket HostCommunicator::begin_all_reduce(std::span<const SumPart> parts, const SumPieces& pieces,
                                          std::string_view what) {
  return begin({Sum{{parts.begin(), parts.end()}, pieces}, std::string(what), {}, 0});
}

std::vector<std::string> HostCommunicator::all_gather_text(std::string_view text) {
  std::vector<std::string> texts;
  wait(begin({Text{text, &texts}, "values of the ranks", {}, 0}));
  return texts;
}

std::vector<std::string> HostCommunicator::gather_text(std::string_view text) {
  std::vector<std::string> texts;
  wait(begin({Text{text, &texts, true}, "values of the ranks", {}, 0}));
  return texts;
}

void HostCommunicator::barrier() {
  std::vector<std::string> texts;
  wait(begin({Text{"", &texts}, "barrier", {}, 0}));
}

Ticket HostCommunicator::begin(Task task) {
  task.step = step_;
  const std::lock_guard lock(mutex_);
  if (error_) throw_error(*error_);
  task.ticket = ++begun_;
  queue_.push_back(std::move(task));
  changed_.notify_all();
  return begun_;
}

void HostCommunicator::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  SNUG_CHECK(ticket >= 1 && ticket <= begun_, "ticket {} of {}", ticket, begun_);
  changed_.wait(lock, [&] { return done_ >= ticket || error_; });
  if (done_ < ticket) throw_error(*error_);
}

void HostCommunicator::abort(std::string_view reason) {
  std::unique_lock lock(mutex_);
  if (error_) return;
  if (!abort_reason_) abort_reason_ = std::string(reason);
  transport_->interrupt(reason);
  changed_.notify_all();
  changed_.wait_for(lock, kAbortTime, [&] { return error_.has_value(); });
}

// By now the worker has ended or never will, so this thread may use the transport.
bool HostCommunicator::is_to_say(const Ending& ending) {
  if (ending.cause == Ending::Cause::told) {
    transport_->pass_on();
    return false;
  }
  const std::string reason = with_code(ending.text, ending.exit_code);
  abort(reason);
  transport_->announce(reason);
  for (const std::string& earlier : transport_->earlier_reasons(kLastWordsTime))
    if (!earlier.empty() &&
        (ending.cause == Ending::Cause::missing || without_code(earlier) == ending.text))
      return false;
  return true;
}

void HostCommunicator::run_worker() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !queue_.empty() || closing_ || abort_reason_; });
    if (abort_reason_) return fail(lock, {*abort_reason_, false});
    if (queue_.empty()) return;
    const Task& task = queue_.front();  // begin() does not move queued tasks
    lock.unlock();
    std::optional<Failure> failure = perform(task);
    if (failure) {
      failure->reason = describe(task) + ": " + failure->reason;
      if (!failure->announced) failure->reason = with_code(failure->reason, kFoundMissing);
    }
    lock.lock();
    if (failure && abort_reason_) failure = Failure{*abort_reason_, false};
    if (failure) return fail(lock, *failure);
    done_ = task.ticket;
    queue_.pop_front();
    changed_.notify_all();
  }
}

// The other ranks are told first: a thread that waits here may end the process as soon as it knows
// of the error.
void HostCommunicator::fail(std::unique_lock<std::mutex>& lock, const Failure& failure) {
  lock.unlock();
  if (!failure.announced) transport_->announce(failure.reason);
  lock.lock();
  error_ = failure;
  queue_.clear();
  changed_.notify_all();
}

std::optional<Failure> HostCommunicator::perform(const Task& task) {
  try {
    std::visit(Overloaded{[&](const Gather& gather) { collectives_.all_gather(gather.parts); },
                          [&](const Reduce& reduce) {
                            collectives_.reduce_scatter(reduce.parts, reduce.pieces);
                          },
                          [&](const Sum& sum) { collectives_.all_reduce(sum.parts, sum.pieces); },
                          [&](const Text& text) {
                            *text.texts = text.to_first ? collectives_.gather_text(text.text)
                                                        : collectives_.all_gather_text(text.text);
                          }},
               task.work);
  } catch (const Collectives::Failed& failed) {
    return failed.failure;
  } catch (const std::exception& error) {
    return Failure{error.what(), false};
  }
  return std::nullopt;
}

// For example "rank 0, step 7, reduce_scatter 'gradients of layer 3'".
std::string HostCommunicator::describe(const Task& task) const {
  const char* kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "exchange of text"};
  const std::string step = task.step ? fmt::format(", step {}", *task.step) : "";
  return fmt::format("rank {}{}, {} '{}'", rank(), step, kinds[task.work.index()], task.what);
}

}  // namespace snug::comm
