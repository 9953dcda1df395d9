/* The least that reading blocks takes: open, preadv, a library's decompression, memcpy of rows.
 *
 * One thread, no checks, no locks; benchmarks/cold.py compiles and calls it. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef int Gunzip(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
typedef size_t Unzstd(void *, void *, size_t, const void *, size_t);

/* Read a cube of n^3 blocks of edge^3 items to `out`, in C order. `packed` and `elements` have room
 * for a block. Returns the number of blocks that are wrong. */
int64_t read_cube(int directory, int64_t n, int64_t edge, int64_t item, char *out, char *packed,
                  char *elements, Gunzip *gunzip, Unzstd *unzstd, void *decoder)
{
    int64_t row = edge * item, size = row * edge * edge, wrong = 0;
    for (int64_t x = 0; x < n; x++)
        for (int64_t y = 0; y < n; y++)
            for (int64_t z = 0; z < n; z++) {
                char name[80], header[16];
                struct iovec parts[2] = {{header, 16}, {packed, (size_t)size + 4096}};
                snprintf(name, sizeof name, "%d/%d/%d", (int)x, (int)y, (int)z);
                int file = openat(directory, name, O_RDONLY);
                int64_t n_read = preadv(file, parts, 2, 0) - 16;
                close(file);
                const char *from = elements;
                size_t used, made = (size_t)n_read;
                if (gunzip)
                    wrong += gunzip(decoder, packed, (size_t)n_read, elements, (size_t)size, &used, &made) != 0;
                else if (unzstd)
                    made = unzstd(decoder, elements, (size_t)size, packed, (size_t)n_read);
                else
                    from = packed;
                wrong += made != (size_t)size;
                char *to = out + (z * edge * edge * n * n + y * edge * n + x) * row;
                for (int64_t k = 0; k < edge; k++, to += row * n * edge * n)
                    for (int64_t j = 0; j < edge; j++, from += row)
                        memcpy(to + j * row * n, from, (size_t)row);
            }
    return wrong;
}
