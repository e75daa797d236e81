// Where NVIDIA's libraries are looked for in a Python environment.
#include "backends/cuda/library/library_folders.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../base/temporary_folder.h"

namespace snug::backends::cuda {
namespace {

namespace fs = std::filesystem;
const std::string kLibrary = "libcublasLt.so.13";

TEST(LibraryFolders, are_those_of_packages_that_hold_the_library) {
  const snug::testing::TemporaryFolder environment;
  const std::string packages = "lib/python3.12/site-packages/nvidia/";
  const fs::path library = environment.write(packages + "cu13/lib/" + kLibrary, "x");
  environment.write(packages + "cudnn/lib/libcudnn.so.9", "x");
  EXPECT_EQ(python_library_folders(environment.path(), kLibrary),
            std::vector<fs::path>{library.parent_path()});
}

// A virtual environment, Debian's own Python with packages of apt and of pip, and Fedora's pip.
TEST(LibraryFolders, are_found_wherever_pythons_keep_packages) {
  for (const char* packages :
       {"lib/python3.12/site-packages", "lib/python3/dist-packages",
        "local/lib/python3.12/dist-packages", "local/lib/python3.13/site-packages"}) {
    const snug::testing::TemporaryFolder environment;
    const fs::path library =
        environment.write(fmt::format("{}/nvidia/cudnn/lib/libcudnn.so.9", packages), "x");
    EXPECT_EQ(python_library_folders(environment.path(), "libcudnn.so.9"),
              std::vector<fs::path>{library.parent_path()})
        << packages;
    EXPECT_TRUE(python_library_folders(environment.path(), kLibrary).empty()) << packages;
  }
}

TEST(LibraryFolders, are_in_the_order_of_their_names) {
  const snug::testing::TemporaryFolder environment;
  std::vector<fs::path> expected;
  for (const char* package :
       {"lib/python3.12/site-packages/nvidia/cu13", "lib/python3.12/site-packages/nvidia/cublas",
        "local/lib/python3.12/dist-packages/nvidia/cu13"})
    expected.push_back(
        environment.write(fmt::format("{}/lib/{}", package, kLibrary), "x").parent_path());
  EXPECT_EQ(python_library_folders(environment.path(), kLibrary), expected);
}

TEST(LibraryFolders, are_none_without_an_environment) {
  EXPECT_TRUE(python_library_folders("", kLibrary).empty());
  EXPECT_TRUE(python_library_folders("no such folder", kLibrary).empty());
}

}  // namespace
}  // namespace snug::backends::cuda
