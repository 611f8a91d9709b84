#include "header.hpp"

#include <map>
#include <set>
#include <string>

#include "tensor_map.hpp"

namespace pkc {

namespace {

constexpr int64_t kMostBox = 256;  // positions of a box that TMA moves

void hold(bool holds, const std::string &problem) {
    if (!holds) throw Error(problem);
}

bool within(const Json &number, int64_t first, int64_t last) {
    return number.is_number_integer() && first <= number.get<int64_t>() && number.get<int64_t>() <= last;
}

void check_number(const Json &header, const char *name, int64_t first) {
    hold(within(header.at(name), first, kLongest), std::string(name) + " is " + header.at(name).dump());
}

// A name, or a constant.
void check_extent(const Json &extent, const std::string &of) {
    hold(extent.is_string() || within(extent, 1, kLongest), "a dimension of " + of + " is " + extent.dump());
}

void check_axis(const Json &axis, const Json &array) {
    if (axis.is_null()) return;
    const int64_t dims = array.at("dims").size();
    hold(within(axis, 0, dims - 1), array.at("name").get<std::string>() + " has no dimension " + axis.dump());
}

void check_array(const Json &array) {
    static const std::set<std::string> layouts = {"private", "shard", "replicate", "symmetric"};
    const std::string name = array.at("name"), layout = array.at("layout");
    element_bytes(array.at("dtype"));
    hold(layouts.contains(layout), name + " has the layout " + layout);
    for (const Json &extent : array.at("dims")) check_extent(extent, name);
    check_axis(array.at("shard"), array);
    for (const char *flag : {"scratch", "packets", "kept", "padded"}) hold(array.at(flag).is_boolean(), name + " has no " + flag);
}

void check_signal(const Json &signal) {
    const std::string name = signal.at("name");
    for (const Json &extent : signal.at("dims")) {
        const bool blocks = extent.is_array();
        hold(!blocks || (extent.size() == 2 && within(extent[1], 1, kLongest)), name + " counts " + extent.dump());
        check_extent(blocks ? extent[0] : extent, name);
    }
}

void check_maps(const Json &field, const Json &array) {
    const std::string name = array.at("name");
    const Json &box = field.at("box");
    hold(!array.at("dims").empty(), name + " has no dimensions to move boxes along");
    check_axis(field.at("split"), array);
    hold(box.is_array(), name + " has the box " + box.dump());
    for (const Json &length : box) hold(within(length, 1, kMostBox), name + " has the box " + box.dump());
    hold(within(field.at("swizzle"), 0, 128), name + " has the swizzle " + field.at("swizzle").dump());
    const Json &joined = field.at("joined");
    hold(joined.is_boolean() && (!joined.get<bool>() || array.at("dims").size() > 1), name + " joins " + joined.dump());
}

}  // namespace

void check_header(const Json &header) {
    std::map<std::string, const Json *> arrays;
    std::set<std::string> names;
    const auto add = [&](const std::string &name) { hold(names.insert(name).second, "there are two of " + name); };
    for (const char *text : {"name", "engines"}) hold(header.at(text).is_string(), std::string("it has no ") + text);
    for (const Json &array : header.at("arrays")) {
        check_array(array);
        add(array.at("name"));
        arrays[array.at("name")] = &array;
    }
    for (const Json &signal : header.at("signals")) {
        check_signal(signal);
        add(signal.at("name"));
    }
    for (const Json &field : header.at("fields")) {
        const std::string kind = field.at("kind");
        if (kind == "TensorMaps") {
            const std::string name = field.at("array");
            hold(arrays.contains(name), "there is no array " + name);
            check_maps(field, *arrays.at(name));
        }
        if (kind == "Base") hold(names.contains(field.at("array")), "there is no " + field.at("array").dump());
        if (kind == "Dimension") hold(field.at("dim").is_string(), "a dimension is called " + field.at("dim").dump());
        if (kind == "RankField") hold(field.at("what").is_string(), "a field tells " + field.at("what").dump());
        if (kind != "Scalar") continue;
        const std::string name = field.at("name"), dtype = field.at("dtype");
        hold(dtype == "f32" || dtype == "i32", name + " has the type " + dtype);
    }
    check_number(header, "threads", 1);
    check_number(header, "shared_bytes", 0);
    check_number(header, "cluster", 1);
    hold(header.contains("trace"), "it has no trace");
    const Json &waits = header.at("waits");
    if (waits.is_null()) return;
    for (const char *name : {"ctas", "reports"}) hold(waits.at(name).is_string(), std::string("waits have no ") + name);
}

}  // namespace pkc
