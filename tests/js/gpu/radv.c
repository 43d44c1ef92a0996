/* SPDX-License-Identifier: MIT
 *
 * A Vulkan driver in front of Mesa's RADV, with which programs compile shaders for graphics processors that are not
 * here. RADV_FORCE_FAMILY makes RADV offer such a processor, but its command buffers crash, and Dawn begins one for each
 * device. So here commands and submits do nothing, and everything else is RADV's, whose file QUERN_RADV names.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);
typedef function (*finder)(void *owner, const char *name);

static void *driver(void)
{
    static void *opened;
    if (!opened) opened = dlopen(getenv("QUERN_RADV"), RTLD_NOW | RTLD_LOCAL);
    if (!opened) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return opened;
}

static function symbol(const char *name) { return (function)(uintptr_t)dlsym(driver(), name); }

static int nothing(void) { return 0; }

/* Whether a function works on command buffers or queues. */
static int is_idle(const char *name)
{
    static const char *const begins[] = {"vkCmd", "vkQueueSubmit", "vkBeginCommandBuffer", "vkEndCommandBuffer",
                                         "vkResetCommand", "vkWaitFor", "vkQueueWaitIdle", "vkDeviceWaitIdle"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (!strncmp(name, begins[i], strlen(begins[i]))) return 1;
    return 0;
}

static finder of_device;

static function device_function(void *device, const char *name)
{
    function found = of_device(device, name);
    return found && is_idle(name) ? (function)nothing : found;
}

__attribute__((visibility("default"))) int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    return ((int (*)(uint32_t *))symbol("vk_icdNegotiateLoaderICDInterfaceVersion"))(version);
}

__attribute__((visibility("default"))) function vk_icdGetInstanceProcAddr(void *instance, const char *name)
{
    function found = ((finder)symbol("vk_icdGetInstanceProcAddr"))(instance, name);
    if (found && !strcmp(name, "vkGetDeviceProcAddr")) {
        of_device = (finder)found;
        return (function)device_function;
    }
    return found && is_idle(name) ? (function)nothing : found;
}

__attribute__((visibility("default"))) function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name)
{
    return ((finder)symbol("vk_icdGetPhysicalDeviceProcAddr"))(instance, name);
}
