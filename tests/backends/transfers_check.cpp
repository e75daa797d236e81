#include "transfers_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "operation_case.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::backends::test {
namespace {

using program::Channel;
using program::DType;
using program::Space;

// Two copies of an array on the device and one in pinned memory, and the operations between them.
class RoundTrip {
 public:
  RoundTrip(Backend& backend, int64_t bytes)
      : backend_(backend),
        bytes_(bytes),
        device_(backend.allocate(Space::device, 2 * aligned(bytes))),
        pinned_(backend.allocate(Space::pinned_host, bytes)),
        source_{device_->data(), DType::u8, {bytes}, {1}},
        host_{pinned_->data(), DType::u8, {bytes}, {1}},
        target_{device_->data() + aligned(bytes), DType::u8, {bytes}, {1}} {
    program::Builder builder("round_trip");
    const program::TensorId from = builder.activation("from", {bytes}, DType::u8);
    const program::TensorId to = builder.activation("to", {bytes}, DType::u8);
    builder.emit(program::Transfer{}, {from}, {to});
    program::Program program = builder.take();
    program.tensor(to).space = Space::pinned_host;
    program.operations[0].channel =
        backend.host_reaches_device() ? Channel::compute : Channel::device_to_host;
    for (int copy = 0; copy < 2; ++copy)
      prepared_.push_back(backend.prepare({program, program.operations[0]}));
  }

  void run() {
    transfer(source_, host_, Channel::device_to_host);
    await(source_, host_);
    // Work of the device that may begin only when the copy is done.
    backend_.queue_copy(source_.data, target_.data, bytes_);
    transfer(host_, target_, Channel::host_to_device);
    await(host_, target_);
  }

  // Puts values in the source and zeros in the target.
  void fill(uint8_t first) {
    values_.resize(static_cast<size_t>(bytes_));
    std::iota(values_.begin(), values_.end(), first);
    const std::vector<uint8_t> zeros(values_.size());
    backend_.copy(source_.data, values_.data(), bytes_);
    backend_.copy(target_.data, zeros.data(), bytes_);
  }

  void expect_arrived() {
    backend_.synchronise();
    EXPECT_EQ(read(target_), values_) << bytes_ << " bytes";
    EXPECT_EQ(std::memcmp(host_.data, values_.data(), values_.size()), 0) << bytes_ << " bytes";
    EXPECT_EQ(read(source_), std::vector<uint8_t>(values_.size())) << "the copy came too late";
  }

 private:
  static int64_t aligned(int64_t bytes) {
    constexpr int64_t kAlignment = 256;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  void transfer(const Buffer& from, const Buffer& to, Channel channel) {
    static const program::Attributes attributes = program::Transfer{};
    run(attributes, from, {&to, 1}, {}, channel);
  }

  void await(const Buffer& from, const Buffer& to) {
    static const program::Attributes attributes = program::Await{};
    run(attributes, from, {}, {&to, 1}, Channel::compute);
  }

  void run(const program::Attributes& attributes, const Buffer& from,
           std::span<const Buffer> writes, std::span<const Buffer> updates, Channel channel) {
    Invocation invocation;
    invocation.channel = channel;
    invocation.attributes = &attributes;
    invocation.reads = {&from, 1};
    invocation.writes = writes;
    invocation.updates = updates;
    backend_.run(invocation);
  }

  std::vector<uint8_t> read(const Buffer& buffer) {
    std::vector<uint8_t> values(static_cast<size_t>(bytes_));
    backend_.copy(values.data(), buffer.data, bytes_);
    return values;
  }

  Backend& backend_;
  int64_t bytes_;
  std::unique_ptr<Arena> device_;
  std::unique_ptr<Arena> pinned_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
  Buffer source_;
  Buffer host_;
  Buffer target_;
  std::vector<uint8_t> values_;
};

}  // namespace

void check_transfers(Backend& backend) {
  for (const int64_t bytes : {int64_t{1}, int64_t{255}, int64_t{4096}, (int64_t{5} << 20) + 3}) {
    RoundTrip trip(backend, bytes);
    trip.fill(1);
    trip.run();
    trip.expect_arrived();
    const std::unique_ptr<Recording> recording = backend.record([&] { trip.run(); });
    if (recording == nullptr) continue;
    for (const uint8_t first : {uint8_t{7}, uint8_t{9}}) {
      trip.fill(first);
      recording->replay();
      trip.expect_arrived();
    }
  }
}

}  // namespace snug::backends::test
