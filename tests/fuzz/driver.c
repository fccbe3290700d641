/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over the files of directories, without a fuzzer: what was found once stays a
 * regression test with any compiler. Each file is copied to a block of its exact size, so that
 * AddressSanitizer sees a read past its end.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_run(const char *path)
{
    static uint8_t input[INPUT_MAX];
    FILE *file = fopen(path, "re");
    uint8_t *copy;
    size_t size;

    if (file == NULL)
        return -1;
    size = fread(input, 1, sizeof(input), file);
    fclose(file);
    copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        return -1;
    memcpy(copy, input, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 0;
}

static int directory_run(const char *directory)
{
    DIR *stream = opendir(directory);
    struct dirent *entry;
    char path[4096];
    int count = 0;

    if (stream == NULL)
        return 0;
    while ((entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        if (file_run(path) == 0)
            count++;
    }
    closedir(stream);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;

    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        count += directory_run(argv[i]);
    printf("1..1\nok 1 - empty input and %d files\n", count);
    return EXIT_SUCCESS;
}
