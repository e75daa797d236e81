#include "comm/gather_text.h"

#include "base/error.h"
#include "comm/host_communicator.h"

namespace snug::comm {

std::vector<std::string> gather_text(Communicator& communicator, std::string_view text) {
  auto* host = dynamic_cast<HostCommunicator*>(&communicator);
  SNUG_CHECK(host != nullptr, "{} gathers no text", communicator.name());
  return host->gather_text(text);
}

}  // namespace snug::comm
