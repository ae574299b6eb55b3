// SPDX-License-Identifier: Apache-2.0
// Where things are pinned, and links that survive their daemon.
#pragma once

#include <bpf/libbpf.h>

#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace gradlane {

// Folder of a feature of an instance: /sys/fs/bpf/gradlane/INSTANCE/FEATURE-VERSION.
std::string pin_folder(const std::string& instance, const std::string& feature, int version);
// Folder of the part that exists once per kernel.
std::string kernel_pin_folder();

// Makes a folder of pins with its parents, mode 0700 each.
Status make_pin_folder(const std::string& path);
// Removes a pin folder with all in it; links whose pins were the last reference are detached by that. Empty
// parents up to the root of all pins go, too. Nothing there is no error.
Status remove_pin_folder(const std::string& path);

// Lets every map of an object be pinned in a folder by its name, or taken over from there when loaded. Maps
// for which keep returns false stay private to the object.
Status pin_maps(bpf_object* object, const std::string& folder,
                const std::function<bool(const std::string&)>& keep);

// Brings a program to its hook by a pinned link: updates the pinned link if there is one that still has its
// hook, else makes a new one by attach() and pins it.
Status attach_pinned(const std::string& pin, const bpf_program* program,
                     const std::function<bpf_link*()>& attach, const std::string& hook);

}  // namespace gradlane
