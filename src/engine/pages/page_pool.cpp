#include "engine/pages/page_pool.h"

#include "base/error.h"

namespace snug::engine {

PagePool::PagePool(int64_t pages) : pages_(static_cast<size_t>(pages)) {
  for (int64_t page = 0; page < pages; ++page) free_.push(static_cast<PageId>(page));
}

const PagePool::Page& PagePool::at(PageId page) const {
  SNUG_CHECK(page >= 0 && page < pages(), "page {} of {}", page, pages());
  return pages_[static_cast<size_t>(page)];
}

PagePool::Page& PagePool::at(PageId page) {
  return const_cast<Page&>(std::as_const(*this).at(page));
}

PageId PagePool::take() {
  SNUG_CHECK(!free_.empty(), "no free page among {}", pages());
  const PageId page = free_.top();
  free_.pop();
  SNUG_CHECK_EQ(at(page).users, 0);
  at(page).users = 1;
  return page;
}

void PagePool::retain(PageId page) {
  Page& it = at(page);
  SNUG_CHECK(it.users > 0 || it.is_finished, "page {} is free", page);
  if (it.users == 0) kept_.erase(it.released);
  ++it.users;
}

void PagePool::release(PageId page) {
  Page& it = at(page);
  SNUG_CHECK(it.users > 0, "page {} has no user", page);
  if (--it.users > 0) return;
  if (it.is_finished) {
    it.released = releases_++;
    kept_.emplace(it.released, page);
  } else {
    free_.push(page);
  }
}

void PagePool::finish(PageId page) {
  SNUG_CHECK(at(page).users > 0, "page {} has no user", page);
  at(page).is_finished = true;
}

void PagePool::forget(PageId page) {
  Page& it = at(page);
  SNUG_CHECK(it.is_finished, "page {} is not finished", page);
  it.is_finished = false;
  if (it.users > 0) return;
  kept_.erase(it.released);
  free_.push(page);
}

PageId PagePool::least_recent() const {
  SNUG_CHECK(!kept_.empty(), "no kept page among {}", pages());
  return kept_.begin()->second;
}

}  // namespace snug::engine
