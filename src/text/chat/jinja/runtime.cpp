#include "text/chat/jinja/runtime.h"

#include "text/chat/jinja/values/iterate.h"

namespace snug::text::jinja {

Runtime::Level::Level(Runtime& runtime) : runtime_(runtime) {
  if (runtime_.depth_ >= kMaxRunDepth)
    fail("the template nests too deep; does a macro call itself without an end?");
  charge_steps(1);
  ++runtime_.depth_;
}

Value Runtime::generator(List items) { return make<Generator>(std::move(items)); }

}  // namespace snug::text::jinja
