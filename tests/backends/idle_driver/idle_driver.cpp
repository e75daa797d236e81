// A driver's library with no card: what cuDNN looks for before it compiles kernels for a card that
// is described to it. Code is taken and never runs.
namespace {

constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
int something = 0;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
int cuLibraryLoadData(void** library) {
  *library = &something;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &something;
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "the idle driver";
  return kSuccess;
}
int cuGetErrorName(int code, const char** text) { return cuGetErrorString(code, text); }

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): names are all that differs.
#define IDLE(name) \
  int name() { return kSuccess; }
IDLE(cuCtxGetCurrent)
IDLE(cuCtxGetDevice)
IDLE(cuCtxGetLimit)
IDLE(cuCtxPopCurrent)
IDLE(cuCtxPushCurrent)
IDLE(cuDeviceGet)
IDLE(cuDeviceGetAttribute)
IDLE(cuDevicePrimaryCtxRelease)
IDLE(cuDevicePrimaryCtxReset)
IDLE(cuDevicePrimaryCtxRetain)
IDLE(cuDriverGetVersion)
IDLE(cuFuncGetAttribute)
IDLE(cuFuncSetAttribute)
IDLE(cuKernelGetAttribute)
IDLE(cuKernelSetAttribute)
IDLE(cuLaunchCooperativeKernel)
IDLE(cuLaunchKernel)
IDLE(cuLaunchKernelEx)
IDLE(cuLibraryLoadFromFile)
IDLE(cuLibraryUnload)
IDLE(cuLinkAddData)
IDLE(cuLinkAddData_v2)
IDLE(cuLinkAddFile_v2)
IDLE(cuLinkComplete)
IDLE(cuLinkCreate)
IDLE(cuLinkCreate_v2)
IDLE(cuLinkDestroy)
IDLE(cuMemcpyDtoH_v2)
IDLE(cuModuleGetFunction)
IDLE(cuModuleGetGlobal_v2)
IDLE(cuModuleLoadData)
IDLE(cuModuleLoadDataEx)
IDLE(cuModuleLoadFatBinary)
IDLE(cuModuleUnload)
IDLE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
IDLE(cuOccupancyMaxPotentialClusterSize)
IDLE(cuStreamGetCtx)
IDLE(cuStreamSynchronize)
IDLE(cuTensorMapEncodeTiled)
#undef IDLE

}  // extern "C"
