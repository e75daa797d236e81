// Pages are read-only when a kernel begins. The first write to one comes to a handler of signals,
// which keeps the page as it was; what differs afterwards was written.
#include "unfinished_writes.h"

#include <sys/mman.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "block_fibers.h"
#include "device_memory.h"

namespace snug::cuda_emulator {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int kPoison = 0xff;

struct Page {
  std::byte* data;
  std::array<std::byte, kPageBytes> before;
};

struct Range {
  std::byte* data;
  size_t bytes;
};

struct Watch {
  std::vector<Page> pages;                     // that the running kernel, or hiding, has written to
  std::vector<Range> unfinished;               // what kernels before it may still be writing
  std::vector<std::vector<std::byte>> hidden;  // the bytes of each range while they are hidden
  bool is_on = false;
  bool may_not_write = false;
};

Watch& watch() {
  static Watch only;
  return only;
}

// On a fault by a write to watched memory, the page becomes writable; any other fault ends the
// process as it would without a handler.
void keep_page(int signal, siginfo_t* info, void*) {
  Watch& all = watch();
  if (!all.is_on || !is_device_memory(info->si_addr, 1)) {
    std::signal(signal, SIG_DFL);
    return;
  }
  if (all.may_not_write) fail("a kernel that begins early wrote before it waited");
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  auto* data = static_cast<std::byte*>(info->si_addr) - address % kPageBytes;
  Page& page = all.pages.emplace_back();
  page.data = data;
  std::memcpy(page.before.data(), data, kPageBytes);
  mprotect(data, kPageBytes, PROT_READ | PROT_WRITE);
}

void install_handler() {
  struct sigaction action {};
  action.sa_sigaction = keep_page;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
}

void add_written(const Page& page, std::vector<Range>& ranges) {
  for (size_t i = 0; i < kPageBytes; ++i) {
    if (page.data[i] == page.before[i]) continue;
    if (!ranges.empty() && ranges.back().data + ranges.back().bytes == page.data + i)
      ++ranges.back().bytes;
    else
      ranges.push_back({page.data + i, 1});
  }
}

}  // namespace

void begin_to_watch_writes() {
  static const bool kInstalled = (install_handler(), true);
  (void)kInstalled;
  watch().pages.clear();
  watch().is_on = true;
  protect_device_memory(PROT_READ);
}

void end_to_watch_writes(bool before_it_may_run) {
  Watch& all = watch();
  protect_device_memory(PROT_READ | PROT_WRITE);
  all.is_on = false;
  if (!before_it_may_run) all.unfinished.clear();
  for (const Page& page : all.pages) add_written(page, all.unfinished);
}

void hide_unfinished() {
  Watch& all = watch();
  all.hidden.clear();
  for (const Range& range : all.unfinished) {
    all.hidden.emplace_back(range.data, range.data + range.bytes);
    std::memset(range.data, kPoison, range.bytes);
  }
  all.may_not_write = true;
}

void show_unfinished() {
  Watch& all = watch();
  all.may_not_write = false;
  for (size_t i = 0; i < all.hidden.size(); ++i) {
    const Range& range = all.unfinished[i];
    for (size_t j = 0; j < range.bytes; ++j)
      if (range.data[j] != std::byte{kPoison})
        fail("a kernel that begins early wrote before it waited");
  }
  // In reverse, since what several kernels wrote was hidden twice.
  for (size_t i = all.hidden.size(); i-- > 0;)
    std::memcpy(all.unfinished[i].data, all.hidden[i].data(), all.hidden[i].size());
}

void forget_unfinished(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  std::erase_if(watch().unfinished, [&](const Range& range) {
    return range.data >= begin && range.data < begin + bytes;
  });
}

}  // namespace snug::cuda_emulator
