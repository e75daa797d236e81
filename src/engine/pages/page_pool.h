// The pages of one group: who uses them, and which are free. A page without a user is free, or it
// is kept: it holds a finished piece of a beginning, which another sequence may ask for. Everything
// follows from the order of the calls. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

namespace snug::engine {

using PageId = int32_t;
inline constexpr PageId kNoPage = -1;

class PagePool {
 public:
  // Pages 0 to pages - 1, all free.
  explicit PagePool(int64_t pages);

  int64_t pages() const { return std::ssize(pages_); }
  int64_t free() const { return std::ssize(free_); }
  int64_t kept() const { return std::ssize(kept_); }
  int64_t used() const { return pages() - free() - kept(); }

  int64_t users(PageId page) const { return at(page).users; }
  bool is_finished(PageId page) const { return at(page).is_finished; }

  // The free page of the smallest number, which now has one user. Requires a free page.
  PageId take();
  // One user more, of a page that is used or kept.
  void retain(PageId page);
  // One user less. A page that loses its last is kept if it is finished, and free otherwise.
  void release(PageId page);

  // A page that is used holds what others may share: it is never written again.
  void finish(PageId page);
  // A finished page is not to be shared any more: it is free, or will be without users.
  void forget(PageId page);
  // The kept page that lost its last user before all others did. Requires a kept page.
  PageId least_recent() const;

 private:
  struct Page {
    int64_t users = 0;
    bool is_finished = false;
    int64_t released = 0;  // the key in kept_ of a kept page
  };
  const Page& at(PageId page) const;
  Page& at(PageId page);

  std::vector<Page> pages_;
  std::priority_queue<PageId, std::vector<PageId>, std::greater<>> free_;  // the smallest on top
  std::map<int64_t, PageId> kept_;  // by the count of releases when they lost their last user
  int64_t releases_ = 0;
};

}  // namespace snug::engine
