/*
 * h5_msg.c - the table of object header messages, and the rules for those that are not in it
 *
 * FORMAT   HDF5 spec: IV.A.2 "Data Object Header Messages". Flags: bit 1 means that the body is a
 *          reference to a message stored elsewhere; bit 7 that a reader which does not know the
 *          message must refuse the object. Bit 3 asks the same of those who edit the object, which
 *          nobody here does.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h5_msg.h"

/* By id. */
static const h5_msg_row rows[] = {
    [H5_MSG_SPACE] = {H5_MSG_SPACE, "dataspace", 0, h5_msg_space_decode, NULL},
    [H5_MSG_LINK_INFO] = {H5_MSG_LINK_INFO, "link info", 0, h5_msg_link_info_decode, NULL},
    [H5_MSG_TYPE] = {H5_MSG_TYPE, "datatype", 0, h5_msg_type_decode, NULL},
    [H5_MSG_FILL_OLD] = {H5_MSG_FILL_OLD, "old fill value", 0, h5_msg_fill_old_decode, NULL},
    [H5_MSG_FILL] = {H5_MSG_FILL, "fill value", 0, h5_msg_fill_decode, NULL},
    [H5_MSG_LINK] = {H5_MSG_LINK, "link", H5_ROW_MANY, h5_msg_link_decode, NULL},
    [H5_MSG_EXTERNAL] = {H5_MSG_EXTERNAL, "external data files", 0, h5_msg_external_decode, NULL},
    [H5_MSG_LAYOUT] = {H5_MSG_LAYOUT, "data layout", 0, h5_msg_layout_decode, NULL},
    [H5_MSG_GROUP_INFO] = {H5_MSG_GROUP_INFO, "group info", 0, NULL, NULL},
    [H5_MSG_FILTERS] = {H5_MSG_FILTERS, "filter pipeline", 0, h5_msg_filters_decode, NULL},
    [H5_MSG_ATTR] = {H5_MSG_ATTR, "attribute", H5_ROW_MANY, h5_msg_attr_decode, NULL},
    [0x0D] = {0x0D, "comment", 0, NULL, NULL},
    [0x0E] = {0x0E, "old modification time", 0, NULL, NULL},
    [H5_MSG_SHARED_TABLE] = {H5_MSG_SHARED_TABLE, "shared message table", 0, NULL, NULL},
    [H5_MSG_SYMBOL_TABLE] = {H5_MSG_SYMBOL_TABLE, "symbol table", 0, h5_msg_symbols_decode, NULL},
    [0x12] = {0x12, "modification time", 0, NULL, NULL},
    [0x13] = {0x13, "B-tree parameters", 0, NULL, NULL},
    [H5_MSG_DRIVER] = {H5_MSG_DRIVER, "driver info", 0, NULL, "multi-file driver"},
    [H5_MSG_ATTR_INFO] = {H5_MSG_ATTR_INFO, "attribute info", 0, h5_msg_attr_info_decode, NULL},
    [0x16] = {0x16, "reference count", 0, NULL, NULL},
    [0x17] = {0x17, "file space info", 0, NULL, NULL},
    [H5_MSG_CACHE_IMAGE] = {H5_MSG_CACHE_IMAGE, "cache image", 0, NULL, NULL},
};

static const h5_msg_row *find_row(uint16_t id)
{
    return id < sizeof rows / sizeof *rows && rows[id].name ? &rows[id] : NULL;
}

int h5_msg_refused(const h5_msg *m, h5_error *err)
{
    const h5_msg_row *row = find_row(m->id);
    if (row && row->refuse)
        return h5_fail(err, H5_UNSUPPORTED, m->addr, "%s", row->refuse);
    if (!row && m->flags & H5_MSG_FAIL_IF_UNKNOWN)
        return h5_fail(err, H5_UNSUPPORTED, m->addr,
                       "object header message %02x, which must be understood", m->id);
    return H5_OK;
}

int h5_object_refuse(h5_object *o, uint64_t addr, const char *fmt, const char *feature)
{
    h5_fail(&o->refuse, H5_UNSUPPORTED, addr, fmt, feature);
    return H5_OK;
}

int h5_msg_decode(h5_object *o, const h5_msg *m, h5_error *err)
{
    const h5_msg_row *row = find_row(m->id);
    H5_TRY(h5_msg_refused(m, err));
    if (!row || !row->decode)
        return H5_OK;
    if (!(row->flags & H5_ROW_MANY) && o->seen >> m->id & 1)
        return h5_fail(err, H5_FORMAT, m->addr, "object header: a second %s message", row->name);
    o->seen |= 1u << m->id;
    if (m->flags & H5_MSG_SHARED) {
        h5_msg real;
        H5_TRY(h5_shared_find(o, m->id, m->body, m->size, m->addr, &real, err));
        return row->decode(o, &real, err);
    }
    return row->decode(o, m, err);
}

int h5_msg_short(const h5_msg *m, const char *what, h5_error *err)
{
    return h5_fail(err, H5_FORMAT, m->addr, "%s message: its %u bytes end too early", what,
                   m->size);
}
