import java.io.OutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** Hadoop's S3A, by which Spark, Hive and Flink read. */
final class S3aClient implements Clients.Client {
  private static final int RANGES = 4;
  private final Configuration settings = new Configuration();

  S3aClient(String endpoint) {
    settings.set("fs.s3a.endpoint", endpoint);
    settings.set("fs.s3a.endpoint.region", "us-east-1");
    settings.set("fs.s3a.path.style.access", "true");
    settings.set("fs.s3a.access.key", "any");
    settings.set("fs.s3a.secret.key", "any");
    settings.set("fs.s3a.connection.ssl.enabled", "false");
    settings.set("fs.s3a.paging.maximum", "7");
  }

  @Override
  public List<String> ask(Clients.Question q) throws Exception {
    String root = "s3a://" + q.bucket() + "/";
    FileSystem files = FileSystem.get(URI.create(root), settings);
    Path path = new Path(URI.create(root).getScheme(), q.bucket(), "/" + q.key());
    switch (q.verb()) {
      case "list":
        List<String> keys = new ArrayList<>();
        RemoteIterator<LocatedFileStatus> found = files.listFiles(path, true);
        while (found.hasNext()) keys.add(found.next().getPath().toUri().getPath().substring(1));
        return keys;
      case "head":
        FileStatus status = files.getFileStatus(path);
        return List.of("", "" + status.getLen(), ((EtagSource) status).getEtag().replace("\"", ""));
      case "get":
        FileStatus file = files.getFileStatus(path);
        try (FSDataInputStream in = files.open(path)) {
          String[] ends = q.span() == null ? null : q.span().substring("bytes=".length()).split("-");
          long first = ends == null ? 0 : Long.parseLong(ends[0]);
          long end = ends == null ? file.getLen() : Long.parseLong(ends[1]) + 1;
          byte[] body = new byte[(int) (end - first)];
          in.readFully(first, body);
          return Clients.digest(body, ((EtagSource) file).getEtag());
        }
      case "parts": // as its readers of Parquet and ORC do
        long size = files.getFileStatus(path).getLen();
        List<FileRange> ranges = new ArrayList<>();
        for (int i = 0; i < RANGES; i++) {
          long from = size * i / RANGES;
          ranges.add(FileRange.createFileRange(from, (int) (size * (i + 1) / RANGES - from)));
        }
        try (FSDataInputStream in = files.openFile(path).build().get()) {
          in.readVectored(ranges, ByteBuffer::allocate);
          ByteBuffer all = ByteBuffer.allocate((int) size);
          for (FileRange range : ranges) all.put(range.getData().get());
          return Clients.digest(all.array(), "");
        }
      default:
        try (OutputStream out = files.create(path)) {
          out.write(new byte[8 << 20]);
        }
        return List.of();
    }
  }
}
