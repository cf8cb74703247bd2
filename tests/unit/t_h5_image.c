/*
 * t_h5_image.c - metadata cache images made by hand
 *
 * SPDX-License-Identifier: MIT
 */
#include "t_h5.h"

#include "h5_file.h"
#include "h5_msg.h"
#include "h5_sum.h"

enum { ENTRIES = 3 };

typedef struct entry {
    uint64_t addr, n;
    unsigned parents;
} entry;

static void put_image(h5_buf *b, const entry *e, unsigned n)
{
    h5_buf_put(b, "MDCI\0\0", 6);
    h5_buf_u64(b, 0);
    h5_buf_u32(b, n);
    for (unsigned i = 0; i < n; i++) {
        h5_buf_put(b, "\4\0\1\0\0\0\0\0", 8);
        h5_buf_u16(b, e[i].parents);
        h5_buf_u32(b, 0xFFFFFFFF);
        h5_buf_u64(b, e[i].addr);
        h5_buf_u64(b, e[i].n);
        for (unsigned k = 0; k < e[i].parents; k++)
            h5_buf_u64(b, 0);
        for (uint64_t k = 0; k < e[i].n; k++)
            h5_buf_u8(b, (unsigned)(e[i].addr + k) & 0x7F);
    }
    h5_sum_put(b, 0);
}

/* A file of 512 bytes of 0xEE from address 48, then the image; *at where that is. */
static void make(t_h5 *t, const entry *e, unsigned n, uint64_t *at, size_t *bytes)
{
    uint8_t old[512];
    h5_buf b = {0};
    memset(old, 0xEE, sizeof old);
    t_h5_begin(t);
    t_h5_bytes(t, old, sizeof old);
    put_image(&b, e, n);
    *at = t_h5_bytes(t, b.p, b.n);
    *bytes = b.n;
    h5_buf_free(&b);
    t_h5_open(t, 48);
}

static void patches(void **state)
{
    (void)state;
    static const entry e[ENTRIES] = {{200, 30, 0}, {100, 20, 2}, {120, 10, 1}};
    t_h5 t;
    uint64_t at;
    size_t n;
    h5_image im;
    make(&t, e, ENTRIES, &at, &n);
    T_OK(&t, h5_image_load(t.f, at, n, &im, &t.err));
    for (uint64_t from = 48; from < 260; from++)
        for (size_t len = 0; len < 60; len++) {
            uint8_t buf[60];
            memset(buf, 0xEE, sizeof buf);
            h5_image_apply(&im, from, buf, len);
            for (size_t i = 0; i < sizeof buf; i++) {
                uint64_t p = from + i;
                int inside = (p >= 100 && p < 130) || (p >= 200 && p < 230);
                assert_int_equal(buf[i], i < len && inside ? p & 0x7F : 0xEE);
            }
        }
    h5_image_free(&im);
    t_h5_end(&t);
}

static void refused(void **state)
{
    (void)state;
    static const entry over[2] = {{100, 20, 0}, {119, 5, 0}}, out[1] = {{1u << 20, 4, 0}};
    t_h5 t;
    uint64_t at;
    size_t n;
    h5_image im;
    make(&t, over, 2, &at, &n);
    T_FAILS(&t, H5_FORMAT, "overlap", h5_image_load(t.f, at, n, &im, &t.err));
    for (size_t less = 0; less < n; less++) { // cut off: the checksum, or a length that is none
        h5_error none = {0};
        assert_int_equal(h5_image_load(t.f, at, less, &im, &none), H5_FORMAT);
    }
    t_h5_end(&t);
    make(&t, out, 1, &at, &n);
    T_FAILS(&t, H5_FORMAT, "beyond the end", h5_image_load(t.f, at, n, &im, &t.err));
    t_h5_end(&t);
}

/* The header of the root stands in the image alone. */
static void opened_through_it(void **state)
{
    (void)state;
    t_h5 t;
    h5_buf group = {0}, image = {0}, ext = {0};
    h5_file *f;
    h5_object *o;
    uint8_t zeros[512] = {0}, s[H5_SUPERBLOCK_BYTES];
    uint64_t root, at;
    t_h5_begin(&t);
    T_OK(&t, h5_write_group(t.w, NULL, 0, NULL, 0, &root, &t.err));
    uint64_t end = h5_writer_eof(t.w);
    T_OK(&t, h5_writer_flush(t.w, &t.err));
    uint8_t *header = h5_buf_room(&group, (size_t)(end - root));
    T_OK(&t, t.io->read(t.io, root, header, group.n, &t.err));
    T_OK(&t, t.io->write(t.io, root, zeros, group.n, &t.err)); // nothing is left of it
    h5_buf_put(&image, "MDCI\0\0", 6);
    h5_buf_u64(&image, 0);
    h5_buf_u32(&image, 1);
    h5_buf_put(&image, "\4\0\1\0\0\0\0\0\0\0\0\0\0\0", 14);
    h5_buf_u64(&image, root);
    h5_buf_u64(&image, group.n);
    h5_buf_put(&image, group.p, group.n);
    h5_sum_put(&image, 0);
    at = t_h5_bytes(&t, image.p, image.n);
    size_t from = h5_ohdr_msg(&ext, H5_MSG_CACHE_IMAGE, 0);
    h5_buf_u8(&ext, 0);
    h5_buf_u64(&ext, at);
    h5_buf_u64(&ext, image.n);
    T_OK(&t, h5_ohdr_msg_end(&ext, from, &t.err));
    T_OK(&t, h5_ohdr_write(t.w, &ext, &at, &t.err));
    T_OK(&t, h5_writer_flush(t.w, &t.err));
    h5_superblock_pack(root, h5_writer_eof(t.w), s);
    T_OK(&t, h5_file_open_at(t.io, s, &f, &t.err));
    assert_int_not_equal(h5_object_open(f, root, &o, NULL), H5_OK);
    h5_file_close(f);
    h5_set64(s + 20, at);
    h5_set32(s + 44, h5_lookup3(s, 44, 0));
    T_OK(&t, h5_file_open_at(t.io, s, &f, &t.err));
    T_OK(&t, h5_object_open(f, root, &o, &t.err));
    assert_int_equal(h5_object_kind(o), H5_KIND_GROUP);
    h5_object_close(o);
    h5_file_close(f);
    h5_buf_free(&group);
    h5_buf_free(&image);
    h5_buf_free(&ext);
    t_h5_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patches),
        cmocka_unit_test(refused),
        cmocka_unit_test(opened_through_it),
    };
    return cmocka_run_group_tests_name("h5_image", tests, NULL, NULL);
}
