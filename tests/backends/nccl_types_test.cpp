// What Snug says of NCCL's binary interface (nccl_library.h) is what its header says, where that is
// installed.
#include <gtest/gtest.h>
#include <nccl.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/library/nccl_library.h"

namespace snug::backends::cuda::nccl {
namespace {

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Result) == sizeof(ncclResult_t) && sizeof(Type) == sizeof(ncclDataType_t));
static_assert(offsetof(Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));

// A function of the library may be called as one of the table is: as many arguments, each of the
// size and class of the other's.
template <typename A, typename B>
constexpr bool is_passed_alike() {
  return sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B> &&
         std::is_pointer_v<A> == std::is_pointer_v<B>;
}
template <typename Ours, typename Library>
struct Alike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct Alike<R (*)(A...), S (*)(B...)>
    : std::bool_constant<is_passed_alike<R, S>() && (is_passed_alike<A, B>() && ...)> {
};

#define SNUG_CALLED_ALIKE(member, function) \
  static_assert(Alike<decltype(Functions::member), decltype(&function)>::value)
SNUG_CALLED_ALIKE(get_version, ncclGetVersion);
SNUG_CALLED_ALIKE(get_unique_id, ncclGetUniqueId);
SNUG_CALLED_ALIKE(comm_init_rank_config, ncclCommInitRankConfig);
SNUG_CALLED_ALIKE(comm_finalize, ncclCommFinalize);
SNUG_CALLED_ALIKE(comm_destroy, ncclCommDestroy);
SNUG_CALLED_ALIKE(comm_abort, ncclCommAbort);
SNUG_CALLED_ALIKE(comm_get_async_error, ncclCommGetAsyncError);
SNUG_CALLED_ALIKE(get_error_string, ncclGetErrorString);
SNUG_CALLED_ALIKE(get_last_error, ncclGetLastError);
SNUG_CALLED_ALIKE(group_start, ncclGroupStart);
SNUG_CALLED_ALIKE(group_end, ncclGroupEnd);
SNUG_CALLED_ALIKE(send, ncclSend);
SNUG_CALLED_ALIKE(receive, ncclRecv);
SNUG_CALLED_ALIKE(all_gather, ncclAllGather);
#undef SNUG_CALLED_ALIKE

TEST(NcclTypes, HaveTheNumbersOfTheHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config{}.magic, theirs.magic);
  EXPECT_LE(Config{}.version, theirs.version);
  EXPECT_EQ(Config{}.size, offsetof(ncclConfig_t, blocking) + sizeof(int));
  EXPECT_EQ(static_cast<int>(Type::u8), static_cast<int>(ncclUint8));
  EXPECT_EQ(static_cast<int>(Result::success), static_cast<int>(ncclSuccess));
  EXPECT_EQ(static_cast<int>(Result::remote_error), static_cast<int>(ncclRemoteError));
  EXPECT_EQ(static_cast<int>(Result::in_progress), static_cast<int>(ncclInProgress));
}

// The library itself, where it is: all functions are there, and it makes an id without a card.
TEST(NcclTypes, ReachTheLibrary) {
  try {
    int version = 0;
    EXPECT_EQ(functions().get_version(&version), Result::success);
    EXPECT_GE(version, 21800);
    EXPECT_STREQ(functions().get_error_string(Result::success), "no error");
  } catch (const std::exception& error) {
    GTEST_SKIP() << "skipped: " << error.what();
  }
}

}  // namespace
}  // namespace snug::backends::cuda::nccl
